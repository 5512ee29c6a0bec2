# SPDX-License-Identifier: Apache-2.0
"""chains.py SECONDS [SCENARIO..]: Python programs for tests/accuracy/python, on CPython 3.8 and later.

Each scenario runs for its part of the seconds. In its first rounds note() is called at the ends of its chains of
calls: note() asks the interpreter for the frames that are there, and keeps the chain. At the end the chains, and the lines of each
function of them, are printed as JSON: the grammar of this run. BURN_GATE names a FIFO that is read before.
"""
import asyncio
import functools
import gc
import importlib.util
import json
import os
import sys
import tempfile
import threading
import time
import zlib

try:
    import ctypes
except ImportError:
    ctypes = None

CHAINS, FUNCTIONS, SCENARIOS = {}, {}, {}
NEW = sys.version_info >= (3, 11)


def name_of(code):
    return code.co_qualname if NEW else code.co_name


def lines_of(code):
    """All lines that an instruction of the code may have, and its first line."""
    if hasattr(code, "co_lines"):
        lines = {line for _, _, line in code.co_lines() if line}
    else:
        import dis
        lines = {line for _, line in dis.findlinestarts(code)}
    return sorted(lines | {code.co_firstlineno})


def function_of(code):
    """(name, file, first line): not the code itself, which note() would keep alive."""
    f = name_of(code), code.co_filename, code.co_firstlineno
    if f not in FUNCTIONS:
        FUNCTIONS[f] = lines_of(code), bool(code.co_flags & 0x2a0)  # generators and coroutines
    return f


def note(other=None):
    """Keeps the chain of calls that leads to the caller: name, file, first line, line of each, root first. other: the
    caller is in the place of this function."""
    frame, chain = sys._getframe(1), []
    while frame:
        f = function_of(other.__code__ if other and not chain else frame.f_code)
        chain.append(f + (frame.f_lineno if f[0] == name_of(frame.f_code) else f[2] + 1,))
        frame = frame.f_back
    CHAINS[tuple(chain[::-1])] = None


NOTING = [True]


def scenario(f):
    SCENARIOS[f.__name__] = f
    return f


def burn(n=300):
    if NOTING[0]:
        note()
    x = 0
    for i in range(n):
        x += i % 7
    return x


# ---- calls ----

def down(n):
    if n:
        return down(n - 1)
    return burn(3000)


@scenario
def recursion_400():
    down(400)


@scenario
def recursion_1500():
    down(1500)


def through_c(n):
    if n:
        return sorted((n,), key=lambda x: through_c(x - 1))
    return burn(3000)


@scenario
def levels_of_c_100():
    through_c(100)


def by_key(x):
    burn(100)
    return -x


def adding(a, b):
    burn(100)
    return a + b


@scenario
def callbacks():
    sorted([3, 1, 2], key=by_key)
    functools.reduce(adding, (1, 2, 3))
    functools.partial(adding, 1)(2)
    list(map(by_key, (1, 2)))
    max((1, 2), key=by_key)


@scenario
def c_callback():
    if not CALLBACK:
        CALLBACK.append(ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(by_key))
    CALLBACK[0](1)


CALLBACK = []


def numbers(n):
    for i in range(n):
        burn(60)
        yield i


def more_numbers(n):
    yield from numbers(n)
    burn(60)


@scenario
def generators():
    for _ in more_numbers(3):
        burn(60)
    sum(numbers(3))
    next(numbers(1))


async def inner_task(n):
    burn(100)
    await asyncio.sleep(0)
    burn(100)
    return n


async def outer_task():
    await inner_task(1)
    await asyncio.gather(inner_task(2), inner_task(3))


@scenario
def asynchronous():
    LOOP.run_until_complete(outer_task())


LOOP = asyncio.new_event_loop()


def raising(n):
    burn(60)
    if n:
        raising(n - 1)
    raise ValueError(n)


@scenario
def exceptions():
    try:
        raising(4)
    except ValueError:
        burn(60)


def hook(o):
    burn(100)
    return o


@scenario
def json_hook():
    json.loads('[{"a": 1}, {"b": {"c": 2}}]', object_hook=hook)


class Thing:
    def __init__(self, n):
        self.n = burn(60)

    @property
    def value(self):
        return burn(60)

    @staticmethod
    def make(n):
        return Thing(n)

    @classmethod
    def made(cls, n):
        return cls(n)

    def __add__(self, other):
        burn(60)
        return self

    def __del__(self):
        burn(60)


class Child(Thing):
    def __init__(self, n):
        super().__init__(n)
        burn(60)


@scenario
def classes():
    t = Thing.make(1) + Thing.made(2)
    t.value
    t = Child(3)
    del t


@scenario
def one_line():
    for f in (lambda: burn(100)), (lambda: burn(100) + 1), (lambda: [burn(100) for _ in (1,)]): f()  # noqa: E701


TWIN = "def work(burn):\n    burn(100)\n    return inner(burn)\n\n\ndef inner(burn):\n    return burn(100)\n"
TWINS = []


@scenario
def two_files():
    if not TWINS:
        for name in "twin_one", "twin_two":
            path = os.path.join(FOLDER, name + ".py")
            with open(path, "w") as f:
                f.write(TWIN)
            spec = importlib.util.spec_from_file_location(name, path)
            TWINS.append(importlib.util.module_from_spec(spec))
            spec.loader.exec_module(TWINS[-1])
    for t in TWINS:
        t.work(burn)


@scenario
def executed():
    """Code at addresses where other code was: its names and lines are its own."""
    n = executed.n = executed.n % 40 + 1
    text = "%sdef made_%d(burn):\n    burn(100)\nmade_%d(burn)\n" % ("\n" * n, n, n)
    exec(compile(text, "<made %d>" % n, "exec"), {"burn": burn})


executed.n = 0


def plain(x):
    return x


def noting(x):
    note()
    note(plain)
    return x


KEY = [noting]


def hot_key(x):
    return sorted((x, 1), key=KEY[0])


@scenario
def hot():
    """As many calls and returns as can be."""
    for _ in range(30):
        sorted((3, 1, 2), key=hot_key)
        KEY[0] = plain


def compressing(stop):
    data = os.urandom(1 << 18)
    note()
    while time.process_time() < stop:
        zlib.compress(data, 9)


def counting(stop):
    while time.process_time() < stop:
        NOTED.add(threading.get_ident())
        NOTING[0] = len(NOTED) < 2
        burn(2000)


NOTED = set()


def threads(stop):
    note()
    all = []
    for f in (compressing, counting, compressing, counting):
        all.append(threading.Thread(target=f, args=(stop,)))
        all[-1].start()
    for t in all:
        t.join()


SCENARIOS["threads"] = threads


def run(name, seconds):
    f, end, n = SCENARIOS[name], time.process_time() + seconds, 0
    NOTING[0] = True
    if f is threads:
        return threads(end)
    while time.process_time() < end:
        f()
        n += 1
        if n == (41 if f is executed else 2):
            NOTING[0] = False


def grammar():
    functions = [f + more for f, more in FUNCTIONS.items()]
    return {"version": sys.version_info[:3], "scenarios": sorted(SCENARIOS), "chains": sorted(CHAINS),
            "functions": sorted(functions)}


def main():
    names = sys.argv[2:] or [n for n in SCENARIOS if n != "c_callback" or ctypes]
    sys.setrecursionlimit(100000)
    gc.disable()
    if os.environ.get("BURN_GATE"):
        with open(os.environ["BURN_GATE"], "rb", 0) as f:
            f.read(1)
    for name in names:
        run(name, float(sys.argv[1]) / len(names))
    LOOP.close()


with tempfile.TemporaryDirectory() as FOLDER:
    main()
    print(json.dumps(grammar()))

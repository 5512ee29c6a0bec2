# SPDX-License-Identifier: Apache-2.0
"""asyncio_chains.py SECONDS [SCENARIO..]: tasks of asyncio that await each other, for tests/run/python-asyncio.

Each task that is awaited is passed through awaited(), on the line of the await: it keeps the functions of the task that
is going to await, with their lines. In the first rounds of a scenario burn() follows what was kept from its own task on:
the chain of this place. At the end all chains are printed as JSON, each innermost first: function, line, and whether its
caller awaits it. BURN_GATE names a FIFO that is read before."""
import asyncio
import json
import os
import sys
import time

AWAITED = {}  # task: the functions of what awaits it, innermost first, and its task
CHAINS, SCENARIOS, NOTING = {}, {}, [True]
KEPT = set()
LIBRARY = os.path.dirname(asyncio.__file__)


def functions_of(frame):
    """The program's functions of the running task."""
    out = []
    while not (frame.f_code.co_name == "_run" and frame.f_code.co_filename.startswith(LIBRARY)):
        if not frame.f_code.co_filename.startswith(LIBRARY):
            out.append([frame.f_code.co_qualname, frame.f_lineno])
        frame = frame.f_back
    return out


def awaited(task):
    AWAITED[task] = functions_of(sys._getframe(1)), asyncio.current_task()
    return task


def note(name):
    chain, task = [f + [False] for f in functions_of(sys._getframe(2))], asyncio.current_task()
    while task in AWAITED:
        chain[-1][2] = True
        functions, task = AWAITED[task]
        chain += [f + [True] for f in functions]
    CHAINS[json.dumps([name, chain])] = None


def burn(name):
    if NOTING[0]:
        note(name)
    x = 0
    for i in range(6000):
        x += i % 7
    return x


def scenario(f):
    SCENARIOS[f.__name__] = f
    return f


async def leaf(name):
    await asyncio.sleep(0)
    burn(name)


def task(name):
    return asyncio.create_task(leaf(name))


@scenario
async def direct():
    await awaited(task("direct"))


async def inner(name):
    await awaited(task(name))


async def outer(name):
    await inner(name)


@scenario
async def coroutines():
    await outer("coroutines")


@scenario
async def called():
    """The running task's coroutines call each other, and C calls a function."""
    await awaited(asyncio.create_task(calling()))


async def calling():
    await asyncio.sleep(0)
    await calling_more()


async def calling_more():
    sorted((1,), key=lambda _: burn("called"))


@scenario
async def gathered():
    await asyncio.gather(awaited(task("gathered")), awaited(task("gathered")))


@scenario
async def gathered_twice():
    await asyncio.gather(asyncio.gather(awaited(task("gathered_twice"))), asyncio.sleep(0))


@scenario
async def grouped():
    async with asyncio.TaskGroup() as group: awaited(group.create_task(leaf("grouped")))  # noqa: E701


@scenario
async def waited():
    await asyncio.wait([awaited(task("waited")), awaited(task("waited"))])


@scenario
async def waited_for():
    await asyncio.wait_for(awaited(task("waited_for")), 60)


@scenario
async def shielded():
    await asyncio.shield(awaited(task("shielded")))


async def tasks(n):
    if n:
        await awaited(asyncio.create_task(tasks(n - 1)))
    else:
        await asyncio.sleep(0)
        burn("deep")


@scenario
async def deep():
    await tasks(9)


async def generator():
    await asyncio.sleep(0)
    yield await awaited(task("through_generator"))


@scenario
async def through_generator():
    async for _ in generator():
        pass


class Wrapped:
    def __await__(self):
        return inner("through_wrapper").__await__()


@scenario
async def through_wrapper():
    await Wrapped()


class Yielding:
    def __await__(self):
        return (yield from awaited(task("through_yield")).__await__())


@scenario
async def through_yield():
    await Yielding()


@scenario
async def other_callbacks():
    """Callbacks of the program's own come first, and one of them knows another task."""
    t, other = task("other_callbacks"), asyncio.current_task()
    t.add_done_callback(KEPT.discard)
    t.add_done_callback(lambda _: other)
    await awaited(t)


@scenario
async def in_background():
    """Nothing awaits the task: what waits is woken up by a callback of the program's own."""
    t, done = task("in_background"), asyncio.get_running_loop().create_future()
    t.add_done_callback(lambda _: done.set_result(1))
    await done


async def run(name, seconds):
    end, n = time.process_time() + seconds, 0
    NOTING[0] = True
    while time.process_time() < end:
        await SCENARIOS[name]()
        AWAITED.clear()
        n += 1
        NOTING[0] = n < 2


async def main():
    names = sys.argv[2:] or list(SCENARIOS)
    for name in names:
        await run(name, float(sys.argv[1]) / len(names))


if os.environ.get("BURN_GATE"):
    with open(os.environ["BURN_GATE"], "rb", 0) as f:
        f.read(1)
asyncio.run(main())
print(json.dumps([json.loads(c) for c in CHAINS]), flush=True)

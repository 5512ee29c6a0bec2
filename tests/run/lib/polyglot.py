# SPDX-License-Identifier: Apache-2.0
"""One process with Python, Ruby and Lua, polyglot.c: builds it, records it, and judges its chains in their exact order."""
import collections
import json
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS = 2
HZ = 997
PACKAGES = ("python-3.11-embed", "ruby-3.1")

LETTERS = {"call_python": "p", "py_level": "P", "py_work": "x", "call_ruby": "r", "Object#rb_level": "R",
           "Object#rb_work": "y", "Kernel#to_lua": "k", "call_lua": "l", "lua_level": "L", "lua_work": "z",
           "function <levels.lua:6>": "L"}  # C called it: it has the name of its place
AROUND = "pPrRkl" + "L"
# the three chains of calls of polyglot.c; a sample may be on the way to their ends
CHAINS = {"Python": 2 * AROUND + "pPx", "Ruby": 2 * AROUND + "pPrRy", "Lua": 3 * AROUND + "z"}


def letters(frames):
    return "".join(LETTERS.get(f, "") for f in frames)


def kind(chain):
    """The language whose work is innermost, "on the way", "outside" (the languages begin or end), or "wrong"."""
    for name, full in CHAINS.items():
        if chain == full:
            return name
    if not chain:
        return "outside"
    return "on the way" if any(full.startswith(chain) for full in CHAINS.values()) else "wrong"


def judge(folded):
    """Stacks by kind, and those that are wrong or truncated."""
    sums, wrong = collections.Counter(), collections.Counter()
    with open(folded, encoding="utf-8") as f:
        for line in f:
            stack, weight = line.rsplit(" ", 1)
            chain = letters(stack.split(";"))
            k = "lost" if stack.startswith("[lost") else "wrong" if stack.startswith("[truncated") else kind(chain)
            if k == "outside" and "call_python" in stack:
                k = "wrong"
            sums[k] += int(weight)
            if k == "wrong":
                wrong[chain + " " + stack[-300:]] += int(weight)
    return sums, wrong


def faults(chain):
    """The chain with each of its functions missing, twice, and changed with the next."""
    for i in range(len(chain) - 1):
        yield chain[:i] + chain[i + 1:]
        yield chain[:i] + chain[i] + chain[i:]
        yield chain[:i] + chain[i + 1] + chain[i] + chain[i + 2:]


def pkg_config(*what):
    return subprocess.run(["pkg-config", *what, *PACKAGES], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True).stdout.split()


def build(program):
    """What the compiler says, if it fails."""
    r = subprocess.run(["gcc", "-O2", "-g", "-w", "-o", program, os.path.join(HERE, "polyglot.c"), "-I/usr/include/lua5.4",
                        *pkg_config("--cflags"), *pkg_config("--libs"), "-l:liblua5.4.a", "-lm", "-ldl"],
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return r.stdout if r.returncode else None


def check(tap, fusee, plugins):
    """In the folder of the caller, with the Lua unwinder among the plugins."""
    program = os.path.abspath("polyglot")
    what = "Python, Ruby and Lua in one process"
    if not pkg_config("--libs"):
        tap.skip(what, "libpython3.11-dev or ruby-dev is not installed")
        return
    why = build(program)
    if why:
        tap.check(what + ": the program is built", False, why)
        return
    r = subprocess.run([fusee, "record", "--native", "-F", str(HZ), "-o", "polyglot.folded", "--stats", "polyglot.json", "--",
                        program, str(SECONDS)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                       env=dict(os.environ, FUSEE_PLUGIN_PATH=plugins))
    if not tap.check(what + " are recorded", r.returncode == 0, r.stdout):
        return
    sums, wrong = judge("polyglot.folded")
    with open("polyglot.json") as f:
        stats = json.load(f)
    due = sum(n for k, n in sums.items() if k not in ("outside", "lost"))
    tap.check(what + ": each chain is in its order",
              due >= 0.6e9 * SECONDS and sums["wrong"] <= 0.002 * due and sums["on the way"] <= 0.1 * due and
              all(sums[k] >= 0.1 * due for k in CHAINS),
              "%s\n%s" % (dict(sums), "\n".join("%d %s" % (n, c) for c, n in wrong.most_common(4))))
    tap.check(what + ": the kernel unwinds them", stats["bpf"]["unwound"] >= 0.98 * stats["samples"], stats)
    tap.note({k: round(n / 1e9, 3) for k, n in sums.items()})
    tap.check("chains with a function missing, twice or in another place are seen",
              all(kind(f) == "wrong" for full in CHAINS.values() for f in faults(full)))

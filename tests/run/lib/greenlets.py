# SPDX-License-Identifier: Apache-2.0
"""Greenlets, from PyPI: chains of Python functions are right, or have a reason why they are not complete."""
import collections
import os
import re
import subprocess

PROGRAM = """import time
from greenlet import greenlet


def burn(n):
    x = 0
    for i in range(n):
        x += i % 7
    return x


def inner_a():
    while True:
        burn(3000)
        b.switch()


def run_a():
    inner_a()


def inner_b():
    while True:
        burn(3000)
        m.switch()


def run_b():
    inner_b()


def other():
    a.switch()


m = greenlet.getcurrent()
a = greenlet(run_a)
b = greenlet(run_b)
end = time.process_time() + 1
while time.process_time() < end:
    other()
"""
NAMES = {"<module>", "other", "burn", "inner_a", "inner_b", "run_a", "run_b"}
# the main greenlet switches to a, and a to b, which each begin where they were switched to first
CHAIN = re.compile(r"<module>(;other(;run_a(;inner_a(;burn|;run_b(;inner_b(;burn)?)?)?)?)?)?")
NO_FIT = "[truncated: Python frames do not fit the C frames]"


def judge(folded):
    sums, wrong = collections.Counter(), collections.Counter()
    with open(folded, encoding="utf-8") as f:
        for line in f:
            stack, weight = line.rsplit(" ", 1)
            frames = [re.sub(r" \[.*", "", name) for name in stack.split(";")]
            chain = ";".join(name for name in frames if name in NAMES)
            if "burn" not in chain and "switch" not in stack:
                kind = "outside"
            elif stack.startswith("["):
                kind = stack.split(";")[0]
            else:
                kind = "right" if CHAIN.fullmatch(chain) else "wrong"
            sums[kind] += int(weight)
            wrong[chain] += int(weight) if kind == "wrong" else 0
    return sums, wrong


def check(tap, fusee, pythons):
    with open("greenlets.py", "w") as f:
        f.write(PROGRAM)
    for python, version in pythons:
        name = "%d.%d.%d" % version
        what = "Python %s: greenlets" % name
        venv = os.path.abspath("greenlets-" + name)
        made = subprocess.run([python, "-m", "venv", venv], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
        if not made or subprocess.run([venv + "/bin/pip", "-q", "install", "--only-binary", ":all:", "greenlet"],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
            tap.skip(what, "greenlet cannot be installed")
            continue
        subprocess.run([fusee, "record", "-q", "--native", "-F", "499", "-o", "greenlets.folded", "--", venv + "/bin/python",
                        "greenlets.py"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        sums, wrong = judge("greenlets.folded")
        due = sum(n for k, n in sums.items() if k != "outside")
        # 3.11 and 3.12 have each C frame's functions in the C frame
        most = sums["right"] if version[:2] in ((3, 11), (3, 12)) else sums["right"] + sums[NO_FIT]
        tap.check(what + " have right chains or a reason", due > 0.6e9 and most >= 0.9 * due and sums["wrong"] <= 0.002 * due,
                  "%s %s" % (dict(sums), wrong.most_common(3)))
        tap.note({k: round(n / 1e9, 3) for k, n in sums.items()})

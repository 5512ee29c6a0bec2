# SPDX-License-Identifier: Apache-2.0
"""continued.py LIBRARY MODE SECONDS: main() calls one() and so on to five(), of which some call through C; five() calls
the library, continued.c. LIBRARY is a folder for the mode late: all its libraries are loaded in turn."""
import ctypes
import os
import sys
import time

N = 200000
LIBRARY, MODE, SECONDS = sys.argv[1], sys.argv[2], float(sys.argv[3])
CALLBACK = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long)


def load(path):
    lib = ctypes.CDLL(path)
    for f in (lib.run, lib.run_stale, lib.run_between):
        f.restype = ctypes.c_long
    return lib


def ended(depth):
    """Called by C, and at an end when the library burns CPU time."""
    return next(map(ended, [depth - 1])) if depth > 1 else 0


def inner(n):
    s = 0
    for i in range(n):
        s += i
    return s & 0xffff


def called(n):
    """Called by C below hard()."""
    return inner(n)


ENDED, CALLED = CALLBACK(ended), CALLBACK(called)


def five(lib):
    if MODE in ("plain", "late"):
        lib.run(ctypes.c_long(20 * N))
    elif MODE == "between":
        lib.run_between(CALLED, ctypes.c_long(N // 10))
    elif MODE == "both":
        lib.run_between(AGAIN, ctypes.c_long(0))
    else:
        lib.run_stale(ENDED, ctypes.c_long(int(MODE)), ctypes.c_long(N))


def again(n):
    """The library below the library."""
    LIB.run(ctypes.c_long(N))
    return n


AGAIN = CALLBACK(again)


def four(lib):
    return list(map(five, [lib]))


def three(lib):
    return four(lib)


def two(lib):
    return sorted([lib], key=three)


def one(lib):
    two(lib)


def main():
    end = time.process_time() + SECONDS
    if MODE == "late":
        for name in sorted(os.listdir(LIBRARY)):
            lib = load(os.path.join(LIBRARY, name))
            for _ in range(4):
                one(lib)
        return
    while time.process_time() < end:
        one(LIB)


if MODE != "late":
    LIB = load(LIBRARY)
main()

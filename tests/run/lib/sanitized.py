# SPDX-License-Identifier: Apache-2.0
"""Builds with sanitizers: one of each kind for all tests, their options, and what they report.

usage: sanitized.py KIND    makes it and prints its directory"""
import fcntl
import os
import re
import subprocess
import sys

TOP = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))
OPTIONS = {
    "address,undefined": {"ASAN_OPTIONS": "detect_leaks=1:quarantine_size_mb=16", "UBSAN_OPTIONS": "print_stacktrace=1"},
    "thread": {"TSAN_OPTIONS": "second_deadlock_stack=1"},
}
# target and flags; -O0 compiles four times as fast as -O2, and keeps each access that the sanitizers check
HOW = {"address,undefined": ("all", "unit", "CFLAGS=-O0 -g"), "thread": ("all", "CFLAGS=-O1 -g")}


def kind_of(build):
    """Of a build directory; None: it has no sanitizer."""
    name = os.path.basename(os.path.normpath(build))
    return "thread" if "thread" in name else "address,undefined" if "address" in name else None


def build(kind):
    """-> (directory, what make said if it failed). Of tests that ask for it at once one makes it, and the others wait."""
    folder = os.path.join(TOP, "build-" + kind.replace(",", "-"))
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = subprocess.run(["make", "-s", "-C", TOP, "-j%d" % os.cpu_count(), "SANITIZER=" + kind, *HOW[kind]],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return folder, made.stdout[-3000:] or "make failed" if made.returncode else ""


def make(tap, kind):
    """The directory of the build with this sanitizer; None: it can't be made."""
    folder, wrong = build(kind)
    return folder if tap.check("building with SANITIZER=" + kind, not wrong, wrong) else None


def reports(said):
    """What sanitizers report in a log, at most three of it."""
    begin = r"=====+\n?WARNING: T|FATAL: ThreadSanitizer|==\d+==ERROR: |runtime error: "
    return "\n".join(said[m.start():m.start() + 4000] for m in list(re.finditer(begin, said))[:3])


if __name__ == "__main__":
    at, why = build(sys.argv[1])
    print(at)
    sys.exit(why)

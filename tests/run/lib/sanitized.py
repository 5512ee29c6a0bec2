# SPDX-License-Identifier: Apache-2.0
"""Builds with sanitizers: made, their options, and what they report."""
import os
import re
import subprocess

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
OPTIONS = {
    "address,undefined": {"ASAN_OPTIONS": "detect_leaks=1:quarantine_size_mb=16", "UBSAN_OPTIONS": "print_stacktrace=1"},
    "thread": {"TSAN_OPTIONS": "second_deadlock_stack=1"},
}


def kind_of(build):
    """Of a build directory; None: it has no sanitizer."""
    name = os.path.basename(os.path.normpath(build))
    return "thread" if "thread" in name else "address,undefined" if "address" in name else None


def make(tap, kind):
    """The directory of the build with this sanitizer; None: it can't be made."""
    made = subprocess.run(["make", "-s", "-C", TOP, "-j%d" % os.cpu_count(), "SANITIZER=" + kind, "all"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if not tap.check("building with SANITIZER=" + kind, not made.returncode, made.stdout[-3000:]):
        return None
    return os.path.join(TOP, "build-" + kind.replace(",", "-"))


def reports(said):
    """What sanitizers report in a log, at most three of it."""
    begin = r"=====+\n?WARNING: T|FATAL: ThreadSanitizer|==\d+==ERROR: |runtime error: "
    return "\n".join(said[m.start():m.start() + 4000] for m in list(re.finditer(begin, said))[:3])

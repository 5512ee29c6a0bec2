# SPDX-License-Identifier: Apache-2.0
"""The tests of the tree, and what each says of itself in its first lines:

    # check: TIER.. [, alone] [, measures], covers ROOM..

TIER: fast, full, long: those in which it runs; in `long` with FUSEE_TEST_LONG=1. alone: it measures time or
CPU time, so nothing runs beside it. measures: it samples, so chance has a part in it. ROOM: folders or files
that it tests, from the top of the tree.
"""
import glob
import os
import re

TIERS = ("fast", "full", "long")
HEADER = re.compile(r"^(?:#|//) check: (?P<tiers>[a-z ]+)(?P<words>(?:, (?:alone|measures))*), covers (?P<rooms>\S.*)$",
                    re.M)
HEAD = 2500  # bytes of a file that may hold it


class Test:
    def __init__(self, source, command, header):
        """command: None where it should have been built and was not. header: None where there is none."""
        self.source, self.command = source, command
        self.name = source[:-2] if source.endswith(".c") else source
        self.described = header is not None
        self.tiers = header["tiers"].split() if header else list(TIERS[:1])
        self.rooms = header["rooms"].split() if header else []
        self.alone = bool(header) and "alone" in header["words"]
        self.measures = bool(header) and "measures" in header["words"]

    def covers(self, path):
        return path == self.source or any(path == r or path.startswith(r.rstrip("/") + "/") for r in self.rooms)


def header_of(source):
    with open(source, "rb") as f:
        return HEADER.search(f.read(HEAD).decode("utf-8", "replace"))


def runnable(pattern):
    return [p for p in sorted(glob.glob(pattern)) if os.access(p, os.X_OK) and os.path.isfile(p)]


def commands(build):
    """(source, command) of each test, in a fixed order."""
    for path in runnable("tests/style/*"):
        yield path, [path]
    sources = glob.glob("tests/unit/test_*.c") + glob.glob("plugins/*/*/test_*.c")
    for source in sorted(sources, key=os.path.basename):
        program = os.path.join(build, "tests", os.path.basename(source)[:-2])
        yield source, [program] if os.access(program, os.X_OK) else None
    for path in runnable("tests/run/*"):
        yield path, [path, build]


def tests(build):
    return [Test(source, command, header_of(source)) for source, command in commands(build)]

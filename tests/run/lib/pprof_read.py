#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pprof_read.py FILE: the samples of a pprof file, sorted, a line each, as `tool_profile dump` prints
them. A reader of its own, from the format's description: it shares nothing with what it checks."""
import gzip
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../accuracy"))
from pprof import message, numbers, one  # noqa: E402


def main(path):
    with open(path, "rb") as f:
        data = f.read()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    top = message(data)
    strings = [s.decode("utf-8", "surrogateescape") for s in top[6]]
    functions = {}
    for f in map(message, top[5]):
        functions[one(f, 1)] = strings[one(f, 2)]
    locations = {}
    for location in map(message, top[4]):
        lines = ",".join("%s:%d" % (functions[one(n, 1)], one(n, 2))
                         for n in map(message, location[4]))
        locations[one(location, 1)] = " 0x%x" % one(location, 3) + ("=" + lines if lines else "")
    mappings = {one(location, 1): one(location, 2) for location in map(message, top[4])}
    sums = {}
    for s in map(message, top[2]):
        stack = "".join(locations[i] for i in numbers(s[1]))
        # samples of the same stack and labels are one to the model; two files are two stacks
        labels = sorted((strings[one(n, 1)], one(n, 2) and strings[one(n, 2)], one(n, 3),
                         strings[one(n, 4)]) for n in map(message, s[3]))
        key = stack, str(labels), tuple(mappings[i] for i in numbers(s[1]))
        values = numbers(s[2])
        sums[key] = [a + b for a, b in zip(sums[key], values)] if key in sums else values
    lines = [",".join(map(str, v)) + key[0] for key, v in sums.items()]
    out = "".join(x + "\n" for x in sorted(x.encode("utf-8", "surrogateescape").decode("latin-1")
                                           for x in lines))
    sys.stdout.buffer.write(out.encode("latin-1"))


main(sys.argv[1])

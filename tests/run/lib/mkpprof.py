#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a pprof file from folded stacks on stdin: "mapping!function;mapping!function count", root first.

A mapping "path@id" has that build ID; labels come first: "{process=bb,thread=io} mapping!function 7".

usage: mkpprof.py OUT.pb.gz [UNIT] < FOLDED. Field numbers: pprof's profile.proto. 10 ms a sample. profile() for
Python.
"""
import gzip
import sys


def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def number(field, n):
    return varint(field << 3) + varint(n)


def block(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


class Table:
    def __init__(self):
        self.ids = {}

    def add(self, key):
        return self.ids.setdefault(key, len(self.ids))


def profile(lines, unit="nanoseconds", start=1700000000, period="cpu", kind="cpu"):
    """The bytes of a profile of these folded stacks, that begins so many seconds after 1970."""
    strings, mappings, functions = Table(), Table(), Table()
    strings.add("")
    samples = []
    for line in lines:
        stack, count = line.rstrip("\n").rsplit(" ", 1)
        frames, labels = [], {}
        if stack.startswith("{"):
            texts, stack = stack[1:].split("} ", 1)
            labels = dict(t.split("=", 1) for t in texts.split(","))
        for frame in stack.split(";"):
            mapping, _, name = frame.partition("!") if "!" in frame else ("", "", frame)
            mappings.add(mapping or "/bin/program")
            frames.append(functions.add((mapping or "/bin/program", name)))
        samples.append((frames[::-1], int(count), labels))
    out = bytearray()
    for name, unit in (("samples", "count"), (kind, unit)):
        out += block(1, number(1, strings.add(name)) + number(2, strings.add(unit)))
    for frames, count, labels in samples:
        ids = b"".join(varint(f + 1) for f in frames)
        out += block(2, block(1, ids) + block(2, varint(count) + varint(count * 10000000))
                     + b"".join(block(3, number(1, strings.add(k)) + number(2, strings.add(v))) for k, v in labels.items()))
    for mapping, i in mappings.ids.items():
        file, _, build = mapping.partition("@")
        out += block(3, number(1, i + 1) + number(3, (1 << 64) - 1) + number(5, strings.add(file))
                     + (number(6, strings.add(build)) if build else b"") + number(7, 1))
    for (mapping, name), i in functions.ids.items():
        out += block(4, number(1, i + 1) + number(2, mappings.ids[mapping] + 1) + number(3, 0x1000 + 16 * i)
                     + block(4, number(1, i + 1) + number(2, 7)))
        s = strings.add(name)
        out += block(5, number(1, i + 1) + number(2, s) + number(3, s))
    out += number(9, start * 10**9) + number(10, 10**10)
    out += block(11, number(1, strings.add(period)) + number(2, strings.add(unit))) + number(12, 10**7)
    out += number(14, strings.add("cpu"))
    for s in strings.ids:
        out += block(6, s.encode("utf-8", "surrogateescape"))
    return bytes(out)


def threads(n):
    """A profile of threads worker-0 .. with tids from 1000 on, each with one sample at a time of its own, the first with the largest."""
    texts = ["", "cpu", "nanoseconds", "main", "x", "thread", "tid"] + ["worker-%d" % i for i in range(n)]
    out = block(1, number(1, 1) + number(2, 2))
    for i in range(n):
        labels = b"".join(block(3, number(1, key) + value) for key, value in ((5, number(2, 7 + i)), (6, number(3, 1000 + i))))
        out += block(2, block(1, b"\1") + block(2, varint(1000000 - i)) + labels + block(1000, varint(2000000 * i)))
    out += block(4, number(1, 1) + block(4, number(1, 1))) + block(5, number(1, 1) + number(2, 3))
    return out + b"".join(block(6, text.encode()) for text in texts) + number(9, 1700000000 * 10**9)


def main(path, unit="nanoseconds"):
    lines = [line.decode("utf-8", "surrogateescape") for line in sys.stdin.buffer]
    with gzip.open(path, "wb") as f:
        f.write(profile(lines, unit))


if __name__ == "__main__":
    main(*sys.argv[1:])

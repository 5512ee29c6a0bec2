# SPDX-License-Identifier: Apache-2.0
"""A reader of pprof's protocol buffers that shares no code with fusee's own, for the checks.

read(path) -> Profile: sample_types [(type, unit)], period, comments, samples: Sample(frames,
values, labels), where frames go from root to leaf, each a Frame(name, file, address, offset,
inlined, line, source, first): inlined ones follow the function that they are in; file is the
mapping's, source the function's, first its first line, flags what its
system name ends with. What fusee lost is in `lost`, not in samples: {reason: values}.
"""

import collections
import gzip
import re
import struct

Frame = collections.namedtuple("Frame", "name file address offset inlined line source first flags",
                               defaults=[frozenset()])
Sample = collections.namedtuple("Sample", "frames values labels")
Profile = collections.namedtuple("Profile", "sample_types period duration_ns comments samples lost")


def varint(b, i):
    v = shift = 0
    while True:
        c = b[i]
        i += 1
        v |= (c & 0x7F) << shift
        if c < 0x80:
            return v & (1 << 64) - 1, i
        shift += 7


def fields(b):
    i = 0
    while i < len(b):
        key, i = varint(b, i)
        kind = key & 7
        if kind == 0:
            v, i = varint(b, i)
        elif kind == 1:
            v = struct.unpack_from("<Q", b, i)[0]
            i += 8
        elif kind == 2:
            n, i = varint(b, i)
            if i + n > len(b):
                raise ValueError("a field is longer than its message")
            v = b[i : i + n]
            i += n
        elif kind == 5:
            v = struct.unpack_from("<I", b, i)[0]
            i += 4
        else:
            raise ValueError("wire type %d" % kind)
        yield key >> 3, v


def message(b):
    m = collections.defaultdict(list)
    for n, v in fields(b):
        m[n].append(v)
    return m


def numbers(values):
    """A repeated integer: packed or not."""
    out = []
    for v in values:
        if isinstance(v, int):
            out.append(v)
            continue
        i = 0
        while i < len(v):
            n, i = varint(v, i)
            out.append(n)
    return [n - (1 << 64) if n >> 63 else n for n in out]


def one(m, n, default=0):
    return m[n][-1] if m[n] else default


def read(path):
    with open(path, "rb") as f:
        raw = f.read()
    if raw[:2] == b"\x1f\x8b":
        raw = gzip.decompress(raw)
    p = message(raw)
    text = [s.decode() for s in p[6]]
    mappings, functions, locations = {}, {}, {}
    for b in p[3]:
        m = message(b)
        mappings[one(m, 1)] = (text[one(m, 5)], one(m, 2), one(m, 4))
    for b in p[5]:
        m = message(b)
        flags = re.search(r" \[([^][]+)\]$", text[one(m, 3)])
        flags = frozenset(flags.group(1).split(",")) if flags else frozenset()
        functions[one(m, 1)] = text[one(m, 2)], text[one(m, 4)], one(m, 5), flags
    for b in p[4]:
        m = message(b)
        file, start, offset = mappings.get(one(m, 2), ("", 0, 0))
        address = one(m, 3)
        at = address - start + offset if file else address
        lines = [message(line) for line in m[4]]  # leaf first
        lines = [functions[one(line, 1)] + (one(line, 2),) for line in lines]
        last = len(lines) - 1  # the function itself, the others are inlined in it
        locations[one(m, 1)] = [
            Frame(name, file, address, at, i < last, line, source, first, flags)
            for i, (name, source, first, flags, line) in enumerate(lines)
        ] or [Frame("", file, address, at, False, 0, "", 0)]
    samples, lost = [], {}
    for b in p[2]:
        m = message(b)
        frames = [f for i in numbers(m[1]) for f in locations[i]]
        labels = {}
        for raw_label in m[3]:
            label = message(raw_label)
            labels[text[one(label, 1)]] = (
                text[one(label, 2)] if label[2] else numbers([one(label, 3)])[0]
            )
        if len(frames) == 1 and frames[0].name.startswith("[lost: ") and "reason" in labels:
            lost[labels["reason"]] = numbers(m[2])
            continue
        samples.append(Sample(frames[::-1], numbers(m[2]), labels))
    types = [(text[one(message(b), 1)], text[one(message(b), 2)]) for b in p[1]]
    return Profile(types, one(p, 12), one(p, 10), [text[i] for i in numbers(p[13])], samples,
                   lost)

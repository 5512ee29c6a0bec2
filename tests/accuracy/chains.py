# SPDX-License-Identifier: Apache-2.0
"""From what a profiler wrote to chains that a grammar can judge (grammars.py says how a chain is
written)."""

import bisect
import collections
import os
import re
import subprocess

import pprof

# One kind of stack: chain, how often, why it was truncated (None: it wasn't), labels.
Stack = collections.namedtuple("Stack", "chain count reason labels weight")

TRUNCATED = re.compile(r"\[truncated: (.*)\]")
NO_NAME = re.compile(r"(.*)\+0x([0-9a-f]+)")
# A thread that exits has no user stack any more once its memory is gone: its chain is that of the kernel alone.
EXIT, EXITING = "[exit]", "do_exit"
NO_FILE = re.compile(r"\[.*: not readable\]")


class Names:
    """Functions of a program by address, from nm: for programs that were stripped."""

    def __init__(self, path):
        rows = {}
        for line in subprocess.run(
            ["nm", "-n", path], capture_output=True, text=True, check=True
        ).stdout.splitlines():
            part = line.split()
            if len(part) == 3 and part[1] in "tTwW":
                rows.setdefault(int(part[0], 16), part[2])
        self.starts, self.rows = sorted(rows), rows

    def at(self, address, exact):
        """exact: only where a function starts there"""
        if exact:
            return self.rows.get(address, "?")
        i = bisect.bisect_right(self.starts, address)
        return self.rows[self.starts[i - 1]] if i else "?"


def plain(name):
    """A function's name without parameters, hashes and the marks of a compiler."""
    name = re.sub(r" \[clone [^\]]*\]", "", name)
    name = re.sub(r"::h[0-9a-f]{16}$", "", name)
    name = re.sub(r"\.(?:abi0|abiinternal|cold|part\.\d+|isra\.\d+|constprop\.\d+)$", "", name)
    if not re.match(r"<|\w+[./]", name):
        name = re.sub(r"\([^()]*\)(?: const)?$", "", name)
    return name.replace(";", ",").replace(" ", "_") if "::" not in name else name.replace(";", ",")


def file_name(path):
    base = os.path.basename(re.sub(r" \(deleted\)$", "", path))
    return re.sub(r"^burn-\d+-", "", base)


def kernel(frame_file, address):
    return (
        frame_file.startswith(("[kernel", "[guest.kernel"))
        or address >> 63
        or frame_file.endswith((".ko", ".ko.xz"))
    )


def written(name, file, program):
    """One frame as grammars.py writes it."""
    name = name or "?"
    if file in (program, ""):
        return name
    return "%s!%s" % (file, name)


def of_fusee(path, program, names=None):
    """-> (stacks, profile)"""
    profile = pprof.read(path)
    kinds = [t[0] for t in profile.sample_types]
    count, weight = kinds.index("samples"), kinds.index("cpu")
    stacks = []
    for s in profile.samples:
        frames, reason = s.frames, None
        truncated = TRUNCATED.fullmatch(frames[0].name) if frames else None
        if truncated:
            reason, frames = truncated.group(1), frames[1:]
        out = []
        for f in frames:
            if kernel(f.file, f.address):
                continue
            file, name = file_name(f.file), f.name
            if f.inlined and file != program:
                continue  # what a library's compiler inlined is no frame in memory
            m = NO_NAME.fullmatch(name)
            if m and names and file == program:
                name = names.at(int(m.group(2), 16), True)
            elif m or not name or NO_FILE.fullmatch(name):
                name = "?"
            out.append(written(plain(name), file, program))
        if not out and reason is None and any(f.name == EXITING for f in frames):
            out = [EXIT]
        stacks.append(Stack(";".join(out), s.values[count], reason, s.labels, s.values[weight]))
    return stacks, profile


def of_perf(text, program, names=None):
    """The output of perf script -F comm,tid,ip,sym,dso --show-mmap-events."""
    stacks, frames, maps, exiting = [], None, [], False

    def end():
        if frames is not None:
            stacks.append(Stack(";".join(frames[::-1]) or (EXIT if exiting else ""), 1, None, {}, 0))

    for line in text.splitlines():
        mmap = re.search(
            r"PERF_RECORD_MMAP2? -?\d+/\d+: \[0x([0-9a-f]+)\(0x([0-9a-f]+)\) @ (0x[0-9a-f]+|0) .*\]: r.x\S* (.*)$",
            line,
        )
        if mmap:
            start, size, offset = (int(x, 16) for x in mmap.groups()[:3])
            maps.append((start, start + size, offset, file_name(mmap.group(4))))
        elif line.startswith("\t") or re.match(r"\s+[0-9a-f]+ ", line):
            m = re.match(r"\s*([0-9a-f]+) (.*) \((.*?)\)$", line)
            if not m or frames is None:
                continue
            ip, name, file = int(m.group(1), 16), m.group(2), file_name(m.group(3))
            if kernel(file, ip):
                exiting = exiting or name == EXITING
                continue
            if name == "[unknown]" and names and file == program:
                at = [
                    ip - lo + off for lo, hi, off, f in maps if lo <= ip < hi and f == program
                ] or [ip]
                name = names.at(at[-1], False)
            elif name == "[unknown]":
                name = "?"
            frames.append(written(plain(name), file, program))
        elif line and not line.startswith("#") and "PERF_RECORD" not in line:
            end()
            frames, exiting = [], False
    end()
    return stacks

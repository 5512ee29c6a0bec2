# SPDX-License-Identifier: Apache-2.0
"""Rooms, their floors, and the table of them that `tests/style/tree --table` prints."""
import os
import re

from graph import components, stem

FLOORS = {"cli": 14, "agent": 13, "completion": 13, "doctor": 13, "dump": 13, "ui": 13, "view": 13, "delivery": 12, "hooks": 12,
          "executables": 12, "record": 12, "profiler": 11, "selection": 11, "policy": 10, "symbolizer": 10, "stop": 10, "ctl": 9, "lua": 9,
          "pipeline": 9, "config": 8, "events": 8, "bpf": 7, "store": 7, "linker": 6, "programs": 6, "parquet": 6, "unwind": 6, "files": 6,
          "query": 5, "worker": 5, "annotation": 4, "export": 4, "import": 4, "inspection": 4, "names": 4, "opener": 4, "probes": 4, "pull": 4,
          "relabel": 4, "spool": 4, "console": 3, "fetcher": 3, "pprof": 3, "report": 3, "symbols": 3, "target": 3, "loss": 2, "net": 2, "plugin": 2,
          "process": 2, "profile": 2, "sandbox": 2, "demangle": 2, "base": 1}
# the page of a room in docs/internals, where its name is another
PAGES = {"unwind": "unwinding"}
# folders outside of the core whose sources have a page too
OUTSIDE = {"bpf/": "bpf", "plugins/lib/": "libraries"}
FILE_LINES = 600
STRUCT_FIELDS = 25
FUNCTION_LINES = 40
ROOM_SOURCES, ROOM_LINES = 25, 4000  # headers not counted


def room(path):
    parts = path.split("/")
    return parts[1] if parts[0] == "core" and len(parts) > 2 else None


def part(path):
    """What the table has a row for: a room, a plugin, bpf, include."""
    parts = path.split("/")
    return "/".join(parts[:3] if parts[0] == "plugins" else parts[:2] if parts[0] == "core" else parts[:1])


def is_abi(path):
    return path.startswith("include/")


def long_files(files):
    return [(f.path, len(f.lines)) for f in files if f.is_product() and len(f.lines) > FILE_LINES]


def crowded(files):
    """(folder, sources, lines) of each that has more than a room has."""
    found = {}
    for f in files:
        if f.is_product() and f.path.endswith(".c"):
            found.setdefault(os.path.dirname(f.path), []).append(len(f.lines))
    return [(folder, len(lines), sum(lines)) for folder, lines in sorted(found.items())
            if len(lines) > ROOM_SOURCES or sum(lines) > ROOM_LINES]


def repeating(files):
    """Paths of the core whose name repeats their room's."""
    return [f.path for f in files if room(f.path) and os.path.basename(f.path).startswith(room(f.path) + "_")]


def wide_structs(files):
    return [(f.path, line, name, n) for f in files if f.is_product() and not is_abi(f.path)
            for name, line, n in f.structs() if n > STRUCT_FIELDS]


def long_functions(files, limit=FUNCTION_LINES):
    return [(f.path, line, name, n) for f in files if f.is_product()
            for name, line, n in f.functions() if n > limit]


def arrows(files, graph):
    """(room, room) -> files: which room includes from or calls into which."""
    edges = {}
    for f in files:
        if room(f.path) and f.is_product():
            for _, quoted, name in f.includes():
                to = name.split("/")[0]
                if quoted and "/" in name and to != room(f.path) and os.path.isdir("core/" + to):
                    edges.setdefault((room(f.path), to), set()).add((stem(f.path), name))
    for a, others in graph.edges.items():
        for b in others:
            if room(a) and room(b) and room(a) != room(b):
                edges.setdefault((room(a), room(b)), set()).add((a, b))
    return edges


def table(files, graph, floors):
    files = [f for f in files if f.is_product()]
    edges = arrows(files, graph)
    groups = graph.circles()
    parts = sorted({part(f.path) for f in files},
                   key=lambda p: (p.split("/")[0] != "core", -floors.get(p.split("/")[-1], 0), p))
    print("| part | files | lines | largest file | arrows up | circles between files | structs > %d fields | "
          "functions > %d lines |" % (STRUCT_FIELDS, FUNCTION_LINES))
    print("|---|---:|---:|---|---:|---:|---:|---:|")
    total = [0] * 6
    for p in parts:
        mine = [f for f in files if part(f.path) == p]
        largest = max(mine, key=lambda f: len(f.lines))
        own = p.split("/")[1] if p.startswith("core/") else None
        row = [len(mine), sum(len(f.lines) for f in mine),
               sum(len(e) for (a, b), e in edges.items()
                   if a == own and floors.get(b, 0) > floors.get(a, 0)),
               sum(any(part(x) == p for x in g) for g in groups),
               len(wide_structs(mine)), len(long_functions(mine))]
        total = [a + b for a, b in zip(total, row)]
        print("| %s | %d | %d | %s %d | %d | %d | %d | %d |" % (
            p, row[0], row[1], os.path.basename(largest.path), len(largest.lines), *row[2:]))
    total[3] = len(groups)
    print("| all | %d | %d | | %d | %d | %d | %d |" % tuple(total))
    inside = {}
    for a, b in edges:
        inside.setdefault(a, {})[b] = None
    print("\ncircles between rooms: %d" % len(components(inside)))
    for group in components(inside):
        print("  " + " ".join(group))
    print("circles between files: %d" % len(groups))
    for group in groups:
        print("  " + " > ".join(os.path.basename(x) for x in graph.circle(group)) +
              " (of %d: %s)" % (len(group), os.path.dirname(group[0])))
    print("files > %d lines: %s" % (FILE_LINES, ", ".join("%s %d" % x for x in long_files(files)) or "none"))
    print("structs > %d fields: %s" % (STRUCT_FIELDS, ", ".join(
        "%s %d" % (name, n) for _, _, name, n in wide_structs(files)) or "none"))
    print("functions > %d lines: %s" % (FUNCTION_LINES, ", ".join(
        "%s %d" % (name, n) for _, _, name, n in long_functions(files)) or "none"))


def pages(files):
    """Each source of a room (X.c with X.h) is in the table of its page exactly once."""
    rooms = {}
    for f in files:
        own = room(f.path) or next((page for top, page in OUTSIDE.items() if f.path.startswith(top)), None)
        if own and f.is_product():
            rooms.setdefault(own, set()).add(f.path)
    for own, paths in sorted(rooms.items()):
        page = "docs/internals/%s.md" % PAGES.get(own, own)
        if not os.path.exists(page):
            yield f"{page}:1: the page of core/{own} is not there"
            continue
        named = {}
        for number, cell in first_cells(page):
            for path in cell_paths(cell, own):
                named.setdefault(path, []).append(number)
        for path in sorted(paths):
            path = path.replace("/internal/", "/")
            lines = sorted(named.get(path, []) + named.get(stem(path), []))
            if not lines:
                yield f"{page}:1: no table has {path}"
            elif len(lines) > 1:
                yield f"{page}:{lines[1]}: {path} is here and in line {lines[0]}"
        for path in sorted(named):
            if not any(os.path.exists(os.path.join(os.path.dirname(path), folder, os.path.basename(path)) + e)
                       for e in ("", ".c", ".h", ".bpf.c") for folder in ("", "internal")):
                yield f"{page}:{named[path][0]}: {path} is not there"


def first_cells(page):
    """(line, first cell) of the rows of tables whose first column is headed "file"."""
    with open(page, encoding="utf-8") as f:
        lines = f.read().splitlines()
    inside = False
    for number, line in enumerate(lines, 1):
        if not line.startswith("|"):
            inside = False
        elif re.match(r"\|\s*files?\s*\|", line):
            inside = True
        elif inside and not re.match(r"\|[\s|:-]*$", line):
            yield number, line.split("|")[1]


def cell_paths(cell, own):
    """`a.c`, `a.{c,h}`, `a`, `bpf/a.h`: each as a path from the tree's root, extensions as they are."""
    for word in re.findall(r"[\w./-]+(?:\{[\w,]+\})?", cell):
        found = re.match(r"(.*)\{(.*)\}$", word)
        for name in [found.group(1) + e for e in found.group(2).split(",")] if found else [word]:
            yield name if "/" in name else f"core/{own}/{name}"

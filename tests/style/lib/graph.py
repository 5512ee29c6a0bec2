# SPDX-License-Identifier: Apache-2.0
"""Which file calls into which: edges between sources, and the circles among them.

A source is X.c with X.h or internal/X.h, or a header alone. A depends on B if A includes (directly or through
other headers) a header that declares a function or object which B defines, and A's code names it.
core/ is one space of names, and each folder of a plugin."""
import os
import re

from sources import KEYWORDS, is_function

WORD = re.compile(r"(?<![\w.>])([A-Za-z_]\w*)")


def stem(path):
    return re.sub(r"\.(c|h)$", "", path).replace("/internal/", "/")


def space(path):
    parts = path.split("/")
    return parts[0] if parts[0] == "core" else "/".join(parts[:3])


class Graph:
    def __init__(self, files):
        self.files = {f.path: f for f in files
                      if f.is_product() and f.path.startswith(("core/", "plugins/"))}
        self.stems = {stem(p) for p in self.files if p.endswith(".c")}
        self.defined = {}    # (space, name) -> sources
        self.declared = {}   # header -> names
        self.bodies = {}     # path -> code without what declares
        for f in self.files.values():
            self.read(f)
        self.edges = {}      # source -> {source: names}
        for f in self.files.values():
            self.connect(f)

    def node(self, path):
        return stem(path) if stem(path) in self.stems else path

    def read(self, f):
        header, bodies = f.path.endswith(".h"), []
        for head, _, body in f.top_level():
            static = re.search(r"\bstatic\b", head)
            if body is not None and is_function(head):
                name = next((n for n in re.findall(r"(\w+)\s*\(", head) if n not in KEYWORDS), None)
                bodies.append(body)
            elif body is not None and not re.search(r"\b(struct|union|enum)\s*\w*\s*$", head.strip()):
                found = re.search(r"(\w+)(\s*\[[^=]*\])*\s*=\s*$", head)
                name = found.group(1) if found else None
                bodies.append(body)
            else:
                name = self.declare(f, head, header)
                bodies.append(head.split("=", 1)[1] if "=" in head else "")
                if header or re.search(r"\bextern\b", head) or not name:
                    continue
            if name and (header or not static):
                self.defined.setdefault((space(f.path), name), set()).add(self.node(f.path))
                if header:
                    self.declared.setdefault(f.path, set()).add(name)
        self.bodies[f.path] = "\n".join(bodies)

    def declare(self, f, head, header):
        """The name that a declaration without a body introduces, None for a type."""
        if re.search(r"\btypedef\b", head) or re.match(r"\s*(static\s+)?(struct|union|enum)(\s+\w+)?\s*$", head):
            return None
        before = head.split("=", 1)[0]
        found = next((n for n in re.findall(r"(\w+)\s*\(", before) if n not in KEYWORDS), None)
        if not found:
            last = re.search(r"(\w+)\s*(\[[^\]]*\]\s*)*$", before.strip())
            found = last.group(1) if last else None
            if header and not re.search(r"\bextern\b", before):
                return None
        if found and not re.search(r"\bstatic\b", before):
            self.declared.setdefault(f.path, set()).add(found)
        return found

    def resolve(self, path, quoted, name):
        for folder in ([os.path.dirname(path)] if quoted else []) + ["core"]:
            full = os.path.normpath(os.path.join(folder, name))
            if full in self.files:
                return full
        return None

    def headers(self, path):
        """All headers that the file includes, directly or not."""
        seen, todo = set(), [path]
        while todo:
            at = todo.pop()
            for _, quoted, name in self.files[at].includes():
                full = self.resolve(at, quoted, name)
                if full and full not in seen:
                    seen.add(full)
                    todo.append(full)
        return seen

    def connect(self, f):
        visible = set()
        for h in self.headers(f.path) | {f.path}:
            visible |= self.declared.get(h, set())
        own = self.node(f.path)
        for name in set(WORD.findall(self.bodies[f.path])) & visible:
            for other in self.defined.get((space(f.path), name), ()):
                if other != own:
                    self.edges.setdefault(own, {}).setdefault(other, set()).add(name)

    def circles(self):
        """Groups of sources that all reach each other, each sorted (Tarjan's algorithm)."""
        return components(self.edges)

    def circle(self, group):
        """One shortest circle within a group, as a list of sources that ends where it begins."""
        best = None
        for start in group:
            back, todo = {start: None}, [start]
            while todo:
                at = todo.pop(0)
                for other in sorted(self.edges.get(at, ())):
                    if other == start:
                        path = [start]
                        while at is not None:
                            path.append(at)
                            at = back[at]
                        if not best or len(path) < len(best):
                            best = path[::-1]
                        todo = []
                        break
                    if other in group and other not in back:
                        back[other] = at
                        todo.append(other)
        return best


def components(edges):
    index, low, stack, on, out = {}, {}, [], set(), []

    def visit(v):
        work = [(v, iter(sorted(edges.get(v, ()))))]
        index[v] = low[v] = len(index)
        stack.append(v)
        on.add(v)
        while work:
            at, others = work[-1]
            for w in others:
                if w not in index:
                    index[w] = low[w] = len(index)
                    stack.append(w)
                    on.add(w)
                    work.append((w, iter(sorted(edges.get(w, ())))))
                    break
                if w in on:
                    low[at] = min(low[at], index[w])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[at])
                if low[at] == index[at]:
                    group = []
                    while not group or group[-1] != at:
                        group.append(stack.pop())
                        on.discard(group[-1])
                    if len(group) > 1:
                        out.append(sorted(group))
    for v in sorted(edges):
        if v not in index:
            visit(v)
    return sorted(out)

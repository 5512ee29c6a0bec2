# SPDX-License-Identifier: Apache-2.0
"""A program of Node.js that knows its stacks, with the line of each call, and whether a profile's stacks are among them."""
import collections
import json
import os
import re
import subprocess

import pprof

SCRIPT = "places.js"
LACKS = "callers are missing"

# Each function that does work notes its stack once, as V8 itself has it (new Error().stack). Then nothing is noted.
PROGRAM = """'use strict';
const noted = new Set();
let noting = true, sink = 0;
Error.stackTraceLimit = 60;
Error.prepareStackTrace = (_, frames) => frames.filter((f) => f.getFileName() === __filename)
  .map((f) => [f.getFunctionName() || '(anonymous)', f.getLineNumber()]).reverse();
function note() {
  noted.add(JSON.stringify(new Error().stack.slice(0, -1)));
}
function work(n) {
  if (noting) note();
  let x = 0;
  for (let i = 0; i < n; i++)
    x += i * i % 7;
  for (let i = 0; i < n; i++) {
    x ^= i << 3;
  }
  return x;
}
function text(n) {
  if (noting) note();
  let s = '';
  for (let i = 0; i < n; i++)
    s += String.fromCharCode(97 + i % 26);
  return s.length +
    s.indexOf('z');
}
function two(n) {
  sink += work(n);
  sink += text(n >> 4);
  return work(n +
    1);
}
class Shape {
  constructor(n) {
    this.n = n;
    this.area = two(n)
      + two(n + 1);
  }
  grow(by) {
    for (const k of [1, 2]) {
      this.n += k;
      this.area += work(this.n);
    }
    return text(by)
      + this.half;
  }
  get half() {
    return work(this.n) / 2;
  }
}
function shapes(n) {
  const s = new Shape(n);
  sink += s.grow(n >> 4);
  return s.half;
}
function mapped(n) {
  return [1, 2, 3].map((k) => {
    return work(n * k) +
      two(k);
  }).length;
}
function thrower(n) {
  try {
    if (n === 0)
      throw 1;
    return thrower(n - 1) +
      work(50);
  } catch (e) {
    return text(20);
  } finally {
    sink += work(40);
  }
}
function many(n) {
  let s = 0;
  switch (n & 3) {
    case 0: s += work(n); break;
    case 1: s += two(n); break;
    default:
      s += mapped(n);
  }
  for (let i = 0; i < 2; i++) { s += work(n + 2); }
  while (s > 1e9)
    s /= 2;
  return s;
}
function round(n) {
  sink += many(n);
  sink += shapes(n);
  sink += thrower(3);
  return many(n + 1) + many(n + 2);
}
function loop(n) {
  for (let i = 0; i < n; i++) {
    sink += round(301);
    sink += round(300);
  }
}
loop(1);
noting = false;
console.log(JSON.stringify([...noted].map((s) => JSON.parse(s))));
for (;;)
  loop(20);
"""


def ranges():
    """The first and the last line of each function."""
    lines, found = PROGRAM.split("\n"), {}
    for i, line in enumerate(lines):
        m = re.match(r"( *)(?:function (\w+)|(?:get )?(constructor|grow|half))\(.*\{$", line)
        if m:
            end = next(k for k in range(i + 1, len(lines)) if lines[k] == m.group(1) + "}")
            found[m.group(2) or m.group(3)] = (i + 1, end + 1)
    # V8 names a constructor by its class, and says what a getter is
    found["Shape"], found["get half"] = found.pop("constructor"), found.pop("half")
    found["(anonymous)"] = (1, len(lines))
    return found


def spelled(name):
    return "get half" if name in ("half", "get half") else name


class Places:
    def __init__(self, chains):
        """chains: what the program has printed. Without the script itself, which has noted another call of loop()."""
        self.known, self.bare, self.range = set(), collections.defaultdict(set), ranges()
        for chain in chains:
            chain = [(spelled(f), line) for f, line in chain[1:]]
            for n in range(len(chain)):
                self.add(chain[:n] + [chain[n][0]])

    def add(self, key):
        self.known.add(tuple(key))
        self.bare[tuple(k[0] for k in key[:-1]) + (key[-1],)].add(tuple(k[1] for k in key[:-1]))

    def lacks(self, callers, name):
        """Is it a noted chain without some of its callers?"""
        for key in self.known:
            rest = iter(key[:-1])
            if key[-1] == name and all(any(c in (k, (k[0], 0)) for k in rest) for c in callers):
                return True
        return False

    def judge(self, frames):
        """-> what is wrong with the program's frames, or None; frames of calls with a line, and without; so of the innermost."""
        chain = [(spelled(f.name), f.line) for f in frames[1:]] or [("loop", 0)]
        callers, (name, line) = chain[:-1], chain[-1]
        with_line = sum(1 for _, at in callers if at)
        counts = with_line, len(callers) - with_line, bool(line), not line
        lines = self.bare.get(tuple(n for n, _ in callers) + (name,))
        if not lines:
            return LACKS if self.lacks(callers, name) else "no such chain", counts
        if not any(all(a in (0, b) for (_, a), b in zip(callers, known)) for known in lines):
            return "no such lines", counts
        first, last = self.range[name]
        if line and not first <= line <= last:
            return "%s is at line %d" % (name, line), counts
        return None, counts


def start(node, options, dir):
    """-> the process, and its Places."""
    path = os.path.join(dir, SCRIPT)
    with open(path, "w") as f:
        f.write(PROGRAM)
    p = subprocess.Popen([node, *options, path], cwd=dir, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    said = p.stdout.readline()
    if not said:
        p.kill()
        p.wait()
        p.stdout.close()
        raise RuntimeError("%s has ended" % node)
    return p, Places(json.loads(said))


class Sums:
    """What the stacks of profiles were."""

    def __init__(self):
        self.samples, self.wrong, self.lines = (collections.Counter() for _ in range(3))

    def add(self, path, places):
        for s in pprof.read(path).samples:
            names, weight = [f.name for f in s.frames], s.values[0]
            frames = [f for f in s.frames if f.source.endswith(SCRIPT)]
            if any("JavaScript" in n for n in names if n.startswith("[truncated")):
                self.samples["truncated"] += weight
            elif names[0].startswith("[truncated") or "[code made at run time]" in names:
                self.samples["early"] += weight  # before the step was loaded
            elif not frames:
                self.samples["native"] += weight
            else:
                why, counts = places.judge(frames)
                self.samples["lacking" if why == LACKS else "wrong" if why else "right"] += weight
                if why and why != LACKS:
                    self.wrong["%s: %s" % (why, " ".join("%s:%d" % (f.name, f.line) for f in frames))] += weight
                for key, n in zip(("calls", "calls without", "innermost", "innermost without"), counts):
                    self.lines[key] += n * weight

    def share(self, kind):
        a, b = self.lines[kind], self.lines[kind + " without"]
        return a / (a + b) if a + b else 0.0

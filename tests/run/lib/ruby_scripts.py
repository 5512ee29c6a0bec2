# SPDX-License-Identifier: Apache-2.0
"""Short scripts of Ruby, and an extension of Ruby that is ten C functions deep."""
import collections
import json
import os
import re
import shutil
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "accuracy"))
import pprof  # noqa: E402
from evidence import SAMPLES, share_holds, until, within  # noqa: E402

# line numbers are checked: work() is at 1 to 9, outer() calls it at 12, the script outer() at 18
SCRIPT = """def work(n)
  x = 0
  i = 0
  while i < n
    x += i % 7
    i += 1
  end
  x
end

def outer(n)
  r = work(n)
  r
end

over = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) + 0.05
while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < over
  outer(3000)
end
"""
CHAIN = [("<main>", {18}), ("Object#outer", {12}), ("Object#work", set(range(1, 10)))]


def scripts_of(profile):
    """Samples of the script's code: in work(), on the way to it, and wrong."""
    profile, sums, wrong = pprof.read(profile), collections.Counter(), collections.Counter()
    n = [t[0] for t in profile.sample_types].index("samples")
    for s in profile.samples:
        frames = [f for f in s.frames if not f.address and not f.file and f.source.endswith("short.rb")]
        if not frames:
            continue
        right = len(frames) <= len(CHAIN) and all(
            f.name == name and (f.line in lines or f is frames[-1]) for f, (name, lines) in zip(frames, CHAIN))
        kind = "wrong" if not right else "in work" if len(frames) == len(CHAIN) and frames[-1].line in CHAIN[-1][1] else "above"
        sums[kind] += s.values[n]
        if kind == "wrong":
            wrong["; ".join("%s:%d" % (f.name, f.line) for f in frames)] += s.values[n]
    return sums, wrong


def record_machine(fusee, command):
    """record -a, from when it samples to the end of the command."""
    with open("log", "w") as log:
        p = subprocess.Popen([fusee, "record", "-a", "-F", "999", "-o", "s.pb.gz", "--stats", "s.json"], stdout=log, stderr=log)
        until(lambda: SAMPLES in open("log").read() or p.poll() is not None)
        subprocess.run(command)
        p.send_signal(signal.SIGINT)
        p.wait(within(120))


def skipped():
    """Share of the ticks that the timer skipped, as on a machine whose CPUs others use: they have no stack."""
    with open("s.json") as f:
        stats = json.load(f)
    return stats["lost"].get("timer skipped", 0) / max(stats["samples_due"], 1)


def short_scripts(tap, fusee, ruby, count, machine):
    """Many, of 50 ms each, started by a shell, and seen by -a if `machine`: 95 % of their samples carry their functions and
    lines. A machine that is busy with much else has no room for copies of the first stacks."""
    with open("short.rb", "w") as f:
        f.write(SCRIPT)
    with open("many.sh", "w") as f:
        f.write("i=0\nwhile [ $i -lt %d ]; do %s --disable=gems short.rb; i=$((i + 1)); done\n" % (count, ruby))
    for what in ("-- sh", "-a") if machine else ("-- sh",):
        if what == "-a":
            record_machine(fusee, ["sh", "many.sh"])
        else:
            subprocess.run([fusee, "record", "-F", "999", "-o", "s.pb.gz", "--stats", "s.json", "--", "sh",
                            "many.sh"], capture_output=True)
        sums, wrong = scripts_of("s.pb.gz")
        shown, due = sums["in work"] + sums["above"], 50 * count * (1 - skipped())
        tap.check("%d scripts of 50 ms, %s: %d of %d samples show their functions" % (count, what, shown, due),
                  share_holds(min(shown, round(due)), round(due), 0.95) and not sums["wrong"], "%s %s" % (dict(sums), wrong.most_common(3)))


DEEP = """require "./deep"
def inner(n)
  i = 0
  i += 1 while i < n
  i
end
def outer(n)
  r = Deep.call(n) { |v| s = inner(v); s }
  r
end
over = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) + 1.5
outer(20000) while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < over
"""
LETTERS = dict({"<main>": "M", "Object#outer": "O", "Deep.call": "C", "rb_yield": "y", "block in Object#outer": "B",
                "Object#inner": "I"}, **{"level_%d" % i: str(i) for i in range(10)})
WAY = "MOC9876543210yBI"


def deep_of(folded):
    sums, wrong = collections.Counter(), collections.Counter()
    with open(folded, encoding="utf-8") as f:
        for line in f:
            stack, weight = line.rsplit(" ", 1)
            chain = "".join(LETTERS.get(frame, "") for frame in stack.split(";"))
            kind = "right" if chain == WAY else "above" if WAY.startswith(chain) else "wrong"
            if stack.startswith("["):
                kind = "truncated"  # until the step is loaded, or lost
            elif not re.match(r"MO|.*\d", chain):
                kind = "outside"  # the program begins or ends, or asks for the time
            sums[kind] += int(weight)
            if kind == "wrong":
                wrong[chain + " " + stack[-200:]] += int(weight)
    return sums, wrong


def extension(tap, fusee):
    """With Debian's Ruby, for which there are headers."""
    what = "an extension ten functions deep, which calls a block"
    flags = subprocess.run(["pkg-config", "--cflags", "ruby-3.1"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    ruby = shutil.which("ruby3.1", path="/usr/bin")
    if flags.returncode or not ruby:
        tap.skip(what, "ruby3.1 or ruby-dev is not installed")
        return
    r = subprocess.run(["gcc", "-O2", "-g", "-w", "-shared", "-fPIC", "-o", "deep.so", os.path.join(HERE, "ruby_deep.c"),
                        *flags.stdout.split()], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if not tap.check(what + ": it is built", r.returncode == 0, r.stdout):
        return
    with open("calls.rb", "w") as f:
        f.write(DEEP)
    r = subprocess.run([fusee, "record", "--native", "-F", "997", "-o", "deep.folded", "--", ruby, "--disable=gems", "calls.rb"],
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    sums, wrong = deep_of("deep.folded") if not r.returncode else ({}, collections.Counter())
    due = sum(n for k, n in sums.items() if k != "outside")
    tap.check(what + ": each chain is in its order", due >= 1e9 and sums["right"] >= 0.8 * due and sums["wrong"] <= 0.002 * due,
              "%s %s %s" % (dict(sums), wrong.most_common(3), r.stdout if r.returncode else ""))
    tap.note({k: round(n / 1e9, 3) for k, n in sums.items()})

# SPDX-License-Identifier: Apache-2.0
"""What a frame of a language costs in the kernel, in native frames.

Programs of the language stand 20 and 100 functions deep; depth.c, without frame pointers, as many. One recorder has all of them, and one
at a time runs. Ticks in other processes are subtracted by their own cost. What a frame costs is the difference between both depths by 80,
in which all else of a sample cancels out. Printed are medians of the rounds with the lowest and the highest. Aim: two native frames.
At a high load: nice -n -15.
"""

import argparse
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "accuracy"))
import added  # noqa: E402
import meter  # noqa: E402
import pprof  # noqa: E402

DEPTHS = (20, 100)
AIM = 2
THREADS = ("main", "java", "node", "MainThread", "depth")
CALL = re.compile(r"((Deep|Wide)\.)?(c\d+|leaf)$|call_[a-f]$")


def options(usage):
    p = argparse.ArgumentParser(usage=usage)
    p.add_argument("build", nargs="?", default="build")
    p.add_argument("--hz", type=int, default=7999)
    p.add_argument("--seconds", type=float, default=2)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--warm", type=float, default=8, help="seconds without a new BPF program")
    o = p.parse_args()
    o.build = os.path.abspath(o.build)
    return o


def programs(folder, commands):
    """-> (kind, depth, command) of each; commands: {kind: depth -> command}, which write a line once they stand that deep"""
    depth = os.path.join(folder, "depth")
    subprocess.run(["gcc", "-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-o", depth, os.path.join(HERE, "depth.c")], check=True)
    for n in DEPTHS:
        yield "native", n, [depth, str(n), "hot"]
        for kind, command in commands.items():
            yield kind, n, command(n)


def wait_for_steps(pid, still):
    """Until the recorder has loaded no BPF program for `still` seconds."""
    def is_program(path):
        try:
            return "bpf-prog" in os.readlink(path)
        except FileNotFoundError:  # it was closed since the folder was listed
            return False

    def loaded():
        folder = "/proc/%d/fd" % pid
        return sum(is_program(os.path.join(folder, fd)) for fd in os.listdir(folder))

    n, since, end = loaded(), time.monotonic(), time.monotonic() + 120
    while time.monotonic() < min(since + still, end):
        time.sleep(0.5)
        now = loaded()
        if now != n:
            n, since = now, time.monotonic()


def are_deep(path, pid, depth):
    """Do nearly all stacks of the process have that many functions? Those from before its step was loaded do not count."""
    deep = n = early = 0
    for s in pprof.read(path).samples:
        if s.labels.get("pid") != pid or s.labels["thread"] not in THREADS:
            continue
        calls = sum(bool(CALL.match(f.name)) for f in s.frames)
        if not calls:
            early += s.values[0]
            continue
        n += s.values[0]
        deep += s.values[0] if calls >= depth - 5 else 0  # depth.c counts what starts it
    print("# %d of %d stacks are %d deep, %d of before" % (deep, n, depth, early), flush=True)
    return n > 100 and deep > 0.95 * n


def text_of(path):
    with open(path) as f:
        return f.read()


def used_ns(pid):
    tasks = "/proc/%d/task" % pid
    return sum(int(text_of("%s/%s/schedstat" % (tasks, tid)).split()[0]) for tid in os.listdir(tasks))


def tick_of(o, p, read):
    """Lets the process run. -> ns of a tick in it; None: it got too little of the CPUs. All ticks are counted: what those in other
    processes take is seen right before and after, and how many are in this one by its CPU time."""
    def counted(seconds):
        ns, n = read()
        time.sleep(seconds)
        now = read()
        return now[0] - ns, now[1] - n

    before = counted(o.seconds / 2)
    p.send_signal(signal.SIGCONT)
    used = used_ns(p.pid)
    ns, n = counted(o.seconds)
    own = (used_ns(p.pid) - used) * o.hz / 1e9
    p.send_signal(signal.SIGSTOP)
    after = counted(o.seconds / 2)
    other = (before[0] + after[0]) / max(1, before[1] + after[1])
    return (ns - (n - own) * other) / own if own > 500 else None


def frames(o, folder, language, commands):
    found = {}
    all_programs = list(programs(folder, commands))
    running, recorder = [], None
    try:
        for kind, _, argv in all_programs:
            running.append(added.program(argv))
            if kind != "native":
                running[-1].stdout.readline()  # until its functions are compiled
            running[-1].send_signal(signal.SIGSTOP)
        recorder, _ = added.recorder(o, ",".join(str(p.pid) for p in running), folder, None, o.hz)
        for p in running:  # until the steps are loaded and the code is known
            p.send_signal(signal.SIGCONT)
        wait_for_steps(recorder.pid, o.warm)
        for p in running:
            p.send_signal(signal.SIGSTOP)
        read = added.account(recorder.pid)
        for _ in range(o.rounds):
            for (kind, depth, _), p in zip(all_programs, running):
                ns = tick_of(o, p, read)
                if ns is None:
                    print("# %s %d: it hardly ran: not counted" % (kind, depth), flush=True)
                else:
                    found.setdefault((kind, depth), []).append(ns)
        added.ended(recorder)
        shallow = ["%s %d" % (kind, depth) for (kind, depth, _), p in zip(all_programs, running)
                   if not are_deep(os.path.join(folder, "p.pb.gz"), p.pid, depth)]
        if shallow:
            raise RuntimeError("stacks are not so deep: " + ", ".join(shallow))
    finally:
        for p in running:
            added.end(p)
        if recorder and recorder.poll() is None:
            added.ended(recorder)
    each = {}
    for kind in ("native", *commands):
        few, many = (found.get((kind, depth), []) for depth in DEPTHS)
        each[kind] = [(b - a) / (DEPTHS[1] - DEPTHS[0]) for a, b in zip(few, many)]
        print("%-25s %s ns with %d frames, %s with %d: %s ns a frame" % (
            kind, meter.spread(few, "%.0f"), DEPTHS[0], meter.spread(many, "%.0f"), DEPTHS[1], meter.spread(each[kind], "%.1f")), flush=True)
    for kind in commands:
        ratios = [a / b for a, b in zip(each[kind], each["native"]) if b > 0]
        print("a frame of %s, %s: %s native frames: %s" % (
            language, kind, meter.spread(ratios, "%.2f"), "no figure" if not ratios else "reached" if statistics.median(ratios) <= AIM else "not reached"))
    return all(each.values())


def bench(o, language, commands):
    """commands: folder -> what programs() takes"""
    fd = meter.enable_bpf_stats()
    if fd is None:
        sys.exit("the kernel does not count the time of BPF programs for this user")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        good = frames(o, folder, language, commands(folder))
    os.close(fd)
    return not good

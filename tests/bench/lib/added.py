# SPDX-License-Identifier: Apache-2.0
"""What a language unwinder adds to a sample: BPF time of the samples of a program, with the unwinder and without it."""

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time

import meter


def without(o, folder, unwinder):
    plugins = os.path.join(folder, "plugins")
    os.mkdir(plugins)
    for name in os.listdir(os.path.join(o.build, "plugins")):
        if name.endswith(".so") and name != unwinder + ".so":
            shutil.copy(os.path.join(o.build, "plugins", name), plugins)
    return plugins


def recorder(o, pid, folder, plugins, hz):
    env = dict(os.environ, FUSEE_PLUGIN_PATH=plugins) if plugins else None
    stats = os.path.join(folder, "stats.json")
    log = open(os.path.join(folder, "log"), "w")
    p = subprocess.Popen([os.path.join(o.build, "fusee"), "record", "-F", str(hz), "-p", str(pid), "--stats", stats,
                          "-o", os.path.join(folder, "p.pb.gz")], stdout=log, stderr=log, env=env)
    for _ in range(1200):
        if "Hz, unwinding in the kernel" in open(log.name).read():
            return p, stats
        if p.poll() is not None:
            break
        time.sleep(0.05)
    raise RuntimeError(open(log.name).read())


def runs_of(p):
    _, programs = meter.bpf_of([p.pid])
    sampler = [x for x in programs.values() if x["prog_type"] == 7]  # BPF_PROG_TYPE_PERF_EVENT
    return sum(x["run_time_ns"] for x in sampler), sum(x["run_cnt"] for x in sampler)


def ended(p):
    p.send_signal(signal.SIGINT)
    p.wait(120)


def cost(o, pid, folder, plugins, other):
    """-> ns of a sample; other: of a tick in another process"""
    p, path = recorder(o, pid, folder, plugins, o.hz)
    time.sleep(1.5)  # until the steps are loaded and the code is known
    before, t = runs_of(p), time.monotonic()
    time.sleep(o.seconds)
    after, seconds = runs_of(p), time.monotonic() - t
    ended(p)
    with open(path) as f:
        stats = json.load(f)
    ns, n = after[0] - before[0], after[1] - before[1]
    if other is None:
        return ns / n if n else 0.0
    share = stats["bpf"]["delivered"] / max(1, stats["bpf"]["delivered"] + stats["bpf"]["not selected"])
    if n < 0.2 * o.hz * seconds or stats["complete"] < 0.9 * stats["samples_due"]:
        raise RuntimeError("not enough samples: %s" % stats)
    return (ns - n * (1 - share) * other) / (n * share)


def account(pid):
    """-> a function that reads time and number of the ticks of a recorder's programs, which takes less time than a tick"""
    paths = {}
    for fd in os.listdir("/proc/%d/fdinfo" % pid):
        path = "/proc/%d/fdinfo/%s" % (pid, fd)
        info = dict(line.split(":\t", 1) for line in open(path).read().splitlines() if ":\t" in line)
        if info.get("prog_type") == "7" and "prog_id" in info:
            paths[info["prog_id"]] = path

    def read():
        ns = n = 0
        for path in paths.values():
            for line in open(path).read().splitlines():
                if line.startswith("run_time_ns:"):
                    ns += int(line.split()[1])
                elif line.startswith("run_cnt:"):
                    n += int(line.split()[1])
        return ns, n
    return read


def single_ticks(o, pid, folder, plugins, other):
    """-> ns of each tick that was seen alone and took longer than those in other processes"""
    p, _ = recorder(o, pid, folder, plugins, o.hz)
    time.sleep(2)
    read, over, out = account(p.pid), time.monotonic() + o.seconds, []
    before = read()
    while time.monotonic() < over:
        now = read()
        if now[1] == before[1] + 1 and now[0] - before[0] > other:
            out.append(now[0] - before[0])
        before = now
    ended(p)
    return out


def bench_ticks(o, folder, unwinder, programs):
    """As bench(), but of single ticks, of which the lower quartile is printed: other load adds little to that."""
    plugins = without(o, folder, unwinder)
    for name, argv in programs:
        p = program(argv)
        own, machine = [], []
        try:
            for _ in range(o.rounds):
                own += single_ticks(o, p.pid, folder, None, o.ticks)
                machine += single_ticks(o, p.pid, folder, plugins, o.ticks)
        finally:
            end(p)
        if min(len(own), len(machine)) < 20:
            print("%-19s: too few ticks were seen alone: %d, %d" % (name, len(own), len(machine)), flush=True)
            continue
        a, b = (statistics.quantiles(v, n=4)[0] for v in (own, machine))
        print("%-19s: %.0f ns with the language's functions (%d ticks), %.0f without (%d): ratio %.2f, added %.0f ns" % (
            name, a, len(own), b, len(machine), a / b, a - b), flush=True)


def end(p):
    p.kill()
    p.wait()
    p.stdout.close()


def program(argv):
    p = subprocess.Popen(argv, stdout=subprocess.PIPE)
    time.sleep(1)
    return p


def bench(o, folder, unwinder, programs):
    """Prints the cost of each of (name, command); o: build, hz, seconds, rounds, ticks."""
    fd = meter.enable_bpf_stats()
    if fd is None:
        sys.exit("the kernel does not count the time of BPF programs for this user")
    if o.ticks:
        bench_ticks(o, folder, unwinder, programs)
        os.close(fd)
        return
    plugins = without(o, folder, unwinder)
    sleeper = subprocess.Popen(["sleep", "1000"])
    try:
        other = statistics.median(cost(o, sleeper.pid, folder, None, None) for _ in range(2))
    finally:
        sleeper.kill()
        sleeper.wait()
    print("a tick in another process: %.0f ns" % other)
    for name, argv in programs:
        p = program(argv)
        own, machine = [], []
        try:
            for _ in range(o.rounds):
                own.append(cost(o, p.pid, folder, None, other))
                machine.append(cost(o, p.pid, folder, plugins, other))
        finally:
            end(p)
        print("%-19s: %s ns with the language's functions, %s without: ratio %s, added %s ns" % (
            name, meter.spread(own, "%.0f"), meter.spread(machine, "%.0f"),
            meter.spread([a / b for a, b in zip(own, machine)], "%.2f"),
            meter.spread([a - b for a, b in zip(own, machine)], "%.0f")), flush=True)
    os.close(fd)

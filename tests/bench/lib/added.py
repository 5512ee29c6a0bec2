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


def end(p):
    p.kill()
    p.wait()
    p.stdout.close()


def program(argv):
    p = subprocess.Popen(argv, stdout=subprocess.PIPE)
    time.sleep(1)
    return p


def bench(o, folder, unwinder, programs):
    """Prints the cost of each of (name, command); o: build, hz, seconds, rounds."""
    fd = meter.enable_bpf_stats()
    if fd is None:
        sys.exit("the kernel does not count the time of BPF programs for this user")
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

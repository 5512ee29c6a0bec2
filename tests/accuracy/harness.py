# SPDX-License-Identifier: Apache-2.0
"""Runs one program under the twin and a profiler, so that both see the same stretch of it.

The program waits at a gate (a FIFO) when it is ready; twin and profiler attach; the gate opens; it
burns its CPU seconds and exits. With `-- CMD` the profiler starts the program, which waits for the
twin in the same way.
"""

import json
import os
import subprocess
import sys
import tempfile
import time


class Trouble(Exception):
    pass


def wait_for(what, seconds, test):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        got = test()
        if got:
            return got
        time.sleep(0.02)
    raise Trouble("waited %d s for %s" % (seconds, what))


def descendants(pid):
    out = []
    try:
        for tid in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/children" % (pid, tid)) as f:
                for child in f.read().split():
                    out += [int(child)] + descendants(int(child))
    except OSError:
        pass
    return out


def events(pid):
    """How many perf events a process and its children hold open."""
    n = 0
    for p in [pid] + descendants(pid):
        try:
            for fd in os.listdir("/proc/%d/fd" % p):
                n += "perf_event" in os.readlink("/proc/%d/fd/%s" % (p, fd))
        except OSError:
            pass
    return n


def settle(pid, process):
    """Until a profiler has its events and opens no more."""
    last, since = 0, time.monotonic()

    def quiet():
        nonlocal last, since
        if process.poll() is not None:
            raise Trouble("the profiler ended: " + process.args[0] + " " + str(process.returncode))
        n = events(pid)
        if n != last:
            last, since = n, time.monotonic()
        return n and time.monotonic() - since > 0.6

    wait_for("the profiler's events", 20, quiet)


def named(pid, program):
    """The process of that program below pid."""
    for p in descendants(pid):
        try:
            if os.path.basename(os.readlink("/proc/%d/exe" % p)) == program:
                return p
        except OSError:
            pass
    return None


class Run:
    """One program under one profiler. args(pid or None, cmd or None) is the profiler's command line."""

    def __init__(self, folder, program, seconds, arguments=()):
        self.program, self.folder = program, folder
        self.command = [os.path.join(folder, program), str(seconds), *arguments]
        self.limit = seconds * 4 + 60
        self.children = []

    def start(self, args, **kw):
        p = subprocess.Popen(args, **kw)
        self.children.append(p)
        return p

    def twin(self, pid, period):
        t = self.start(
            [os.path.join(self.folder, "twin"), "-c", str(period), "-p", str(pid)],
            stdout=subprocess.PIPE,
            text=True,
        )
        if t.stdout.readline() != "ready\n":
            raise Trouble("the twin event can't be had")
        return t

    def gate_open(self, fifo, profiler):
        """When the program has come to its gate: the gate's other end."""

        def come():
            try:
                return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:
                if profiler.poll() is not None:
                    raise Trouble("ended early (%d)" % profiler.returncode)
                return None

        return wait_for("the program to be ready", 30, come)

    def profile(self, args, attach, period, log, env=None):
        """-> what the twin saw (None without period), the program's output"""
        with tempfile.TemporaryDirectory() as folder:
            fifo = os.path.join(folder, "gate")
            caches = os.path.join(os.path.dirname(log.name), "cache")  # none from earlier runs
            os.mkfifo(fifo)
            os.chmod(folder, 0o755)
            os.chmod(fifo, 0o666)
            try:
                return self.profile_in(
                    args, attach, period, log, dict(env or os.environ, BURN_GATE=fifo, XDG_CACHE_HOME=caches), fifo
                )
            finally:
                for p in self.children:
                    if p.poll() is None:
                        p.kill()
                    p.wait()

    def profile_in(self, args, attach, period, log, env, fifo):
        out = subprocess.PIPE
        if attach:
            profiler = target = self.start(self.command, env=env, stdout=out, text=True)
            gate = self.gate_open(fifo, target)
            pid = target.pid
            profiler = self.start(args(pid, None), stdout=log, stderr=log, env=env)
            settle(profiler.pid, profiler)
        else:
            profiler = target = self.start(
                args(None, self.command), stdout=out, stderr=log, text=True, env=env
            )
            gate = self.gate_open(fifo, profiler)
            pid = named(profiler.pid, self.program)
        twin = self.twin(pid, period) if period else None
        os.write(gate, b"x")
        os.close(gate)
        said = target.communicate(timeout=self.limit)[0]
        try:
            profiler.wait(timeout=120)
        except subprocess.TimeoutExpired:
            raise Trouble("the profiler did not end within 120 s after the program")
        if profiler.returncode:
            raise Trouble("the profiler failed (%d)" % profiler.returncode)
        due = json.loads(twin.communicate(timeout=20)[0]) if twin else None
        return due, said


def steal():
    """Seconds of CPU that the machine below took from us, over all CPUs."""
    with open("/proc/stat") as f:
        return int(f.readline().split()[8]) / os.sysconf("SC_CLK_TCK")


def say(*what):
    print(*what, file=sys.stderr, flush=True)

# SPDX-License-Identifier: Apache-2.0
"""Evidence, not seconds: a test goes on until it has what it judges, however slow the machine is.

Deadlines are for what never comes; they are those of a quiet machine times its slowness, which scripts/check has
measured. Shares are judged by their interval."""
import bisect
import glob
import math
import os
import signal
import subprocess
import tempfile
import time

SLOWNESS = max(1.0, float(os.environ.get("FUSEE_CHECK_SLOWNESS", 1)))
CHANCE = 1e-6  # of a verdict that is wrong
PAUSE = 0.02
SAMPLES = " Hz, unwinding"  # fusee record says it once it samples


def within(seconds):
    """A deadline on a quiet machine -> on this one."""
    return seconds * SLOWNESS


def until(what, seconds=30):
    """What what() returns once that is true; its last answer at the deadline."""
    end = time.monotonic() + within(seconds)
    while True:
        got = what()
        if got or time.monotonic() > end:
            return got
        time.sleep(PAUSE)


def pause(seconds, why):
    """Time in which nothing that is judged has to happen: `why` says what it is for."""
    assert why
    time.sleep(seconds)


def cpu_s(pid):
    """CPU time of all threads of a process, and of its children that it has waited for, in s by ticks of the
    kernel's clock; 0 once it has ended."""
    try:
        with open("/proc/%d/stat" % pid) as f:
            return sum(map(int, f.read().rpartition(")")[2].split()[11:15])) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return 0


def runs(pid, seconds, deadline=60):
    """Waits until the process has used so much more CPU time. -> has it?"""
    begin = cpu_s(pid)
    return bool(until(lambda: cpu_s(pid) - begin >= seconds, deadline + seconds))


def attached(recorder, deadline=60):
    """Waits until a recorder holds its events, and a SIGINT ends its recording."""
    def holds():
        try:
            events = any("perf_event" in os.readlink(fd) for fd in glob.glob("/proc/%d/fd/*" % recorder))
            with open("/proc/%d/status" % recorder) as f:
                masks = dict(line.split(":\t") for line in f if line.startswith("Sig"))
        except OSError:
            return not os.path.exists("/proc/%d" % recorder)
        heeds = int(masks["SigBlk"], 16) | int(masks["SigCgt"], 16)
        return events and heeds & 1 << (signal.SIGINT - 1)
    return bool(until(holds, deadline))


def recorded(command, pids, cpu, env=None, deadline=60, enough=None):
    """fusee record until each of these processes has used `cpu` seconds under it, or enough() is true, or it ends itself.
    pids: or a function, called once it samples, that starts them. -> (exit status, what it said). Not for -q: what it says is
    how sampling is known to have begun. A process that gets no CPU is waited for."""
    with tempfile.TemporaryFile("w+") as said:
        recorder = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said, env=env)

        def so_far():
            said.seek(0)
            return said.read()
        if until(lambda: recorder.poll() is not None or SAMPLES in so_far(), deadline) and recorder.poll() is None:
            begin = {pid: cpu_s(pid) for pid in (pids() if callable(pids) else pids)}
            until(lambda: recorder.poll() is not None or
                  (enough() if enough else all(cpu_s(pid) - t >= cpu for pid, t in begin.items())), deadline + cpu)
            recorder.send_signal(signal.SIGINT)
        try:
            recorder.wait(within(deadline))
        except subprocess.TimeoutExpired:
            recorder.kill()
            recorder.wait()
        return recorder.returncode, so_far()


def record(fusee, pids, cpu, *options, **more):
    """The same of fusee record -p."""
    pids = [pids] if isinstance(pids, int) else list(pids)
    return recorded([fusee, "record", "-p", ",".join(map(str, pids)), *options], pids, cpu, **more)


def _log_binomial(n, k, p):
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * math.log(p) + (n - k) * math.log1p(-p)


def counts(n, p, chance=CHANCE):
    """(least, most) of n independent samples of which each is one with probability p: beyond them with less than this
    chance on each side."""
    if not n or p <= 0:
        return 0, 0
    if p >= 1:
        return n, n
    total, sums = 0.0, []
    for k in range(n + 1):
        total += math.exp(_log_binomial(n, k, p))
        sums.append(total)
    return bisect.bisect_left(sums, chance), min(n, bisect.bisect_left(sums, 1 - chance))


def share_holds(k, n, low, high=1.0):
    """May k of n be a share within low .. high?"""
    return bool(n) and counts(n, low)[0] <= k <= counts(n, high)[1]

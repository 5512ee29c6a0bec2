# SPDX-License-Identifier: Apache-2.0
"""What an agent under attack is judged by: its answers on /healthz, its memory and descriptors, and the
profiles of three victims."""
import glob
import math
import os
import re
import socket
import subprocess
import sys
import threading
import time

import evidence
import pprof

LOST = re.compile(r"fusee: (lost|truncated) (\d+) samples?: (.*)")


def get(port, path, host="localhost", timeout=10):
    """(status, body) of a page."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as s:
        s.settimeout(timeout)
        s.sendall(("GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (path, host)).encode())
        got = b""
        while True:
            data = s.recv(65536)
            if not data:
                break
            got += data
    head, _, body = got.partition(b"\r\n\r\n")
    return int(head.split()[1]) if head else 0, body.decode("utf-8", "replace")


class Health(threading.Thread):
    """What health.py says of /healthz: (time, seconds until the answer, of them without a CPU) of each request."""

    def __init__(self, port, pid):
        super().__init__(daemon=True)
        self.answers, self.asker = [], subprocess.Popen(
            [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "health.py"), str(port), str(pid)],
            stdout=subprocess.PIPE, text=True)

    @property
    def ending(self):
        return self.asker.poll() is not None

    @ending.setter
    def ending(self, end):
        if end:
            self.asker.kill()
            self.asker.wait()

    def run(self):
        for line in self.asker.stdout:
            self.answers.append(tuple(float(x) for x in line.split()))

    def answered(self, since):
        """Since then a request has been made, and answered."""
        return any(at >= since and t < 10 for at, t, _ in self.answers)

    def p99(self, since, until, own=False):
        """own: without the time in which the agent had no CPU."""
        times = sorted(t - own * waited for at, t, waited in self.answers if since <= at < until)
        return times[min(len(times) - 1, int(len(times) * 0.99))] if times else math.inf


class Meter(threading.Thread):
    """Resident memory, heap and descriptors of the agent, twice a second."""

    def __init__(self, port, pid):
        super().__init__(daemon=True)
        self.port, self.pid, self.rows, self.ending = port, pid, [], False

    def look(self):
        metrics = dict(line.rsplit(" ", 1) for line in get(self.port, "/metrics")[1].splitlines()
                       if line and line[0] != "#")
        return {"rss": float(metrics["fusee_resident_bytes"]), "heap": float(metrics["fusee_heap_bytes"]),
                "fds": len(os.listdir("/proc/%d/fd" % self.pid)), "metrics": metrics}

    def note(self):
        try:
            self.rows.append((time.monotonic(), self.look()))
        except (OSError, KeyError):
            pass

    def run(self):
        while not self.ending:
            self.note()
            evidence.pause(0.5, "between two looks")

    def most(self, what, since, until):
        return max((row[what] for at, row in self.rows if since <= at < until), default=math.nan)


class Windows:
    """The windows that a sink delivers into a folder: profile, beginning, end and time of delivery, in ns."""

    def __init__(self, folder):
        self.folder, self.all = folder, []

    def look(self):
        for path in sorted(glob.glob(os.path.join(self.folder, "*.pb.gz"))):
            start, duration = times_of(path)
            self.all.append((pprof.read(path), start, start + duration, os.stat(path).st_mtime_ns))
            os.unlink(path)


def times_of(path):
    import gzip
    with gzip.open(path) as f:
        p = pprof.message(f.read())
    return pprof.one(p, 9), pprof.one(p, 10)


class Victims:
    """Sums of windows: complete and other samples of the victims, what was lost, and who ran."""

    def __init__(self, windows, names):
        self.complete = self.broken = self.nameless = 0
        self.strange = {}
        self.lost = {}
        self.functions = {name: {"heavy": 0, "light": 0} for name in names}
        for profile, *_ in windows:
            self.add(profile)

    def add(self, profile):
        for comment in profile.comments:
            found = LOST.match(comment)
            if found and found.group(1) == "lost":
                self.lost[found.group(3)] = self.lost.get(found.group(3), 0) + int(found.group(2))
        for s in profile.samples:
            name = s.labels.get("process")
            if name in self.functions:
                self.add_sample(name, [f.name for f in s.frames], s.values[0])

    def add_sample(self, name, frames, n):
        if "main" not in frames:
            key = ";".join(frames) or "nothing"
            self.strange[key] = self.strange.get(key, 0) + n
            self.broken += n
            return
        self.complete += n
        callee = frames[frames.index("main") + 1:][:1]
        if callee and callee[0] in ("heavy", "light"):
            self.functions[name][callee[0]] += n

    def share(self, name):
        f = self.functions[name]
        return f["heavy"], f["heavy"] + f["light"]

    def due(self, ignored=("timer skipped",)):
        """Whose lost samples were is not known: all count."""
        return self.complete + self.broken + sum(n for why, n in self.lost.items() if not any(i in why for i in ignored))

    def fraction(self):
        """The part of the victims' samples that are complete."""
        return self.complete / self.due() if self.due() else 0.0


def differ(a, b):
    """Whether two shares (count, total) differ, p < 1e-6."""
    n, m = max(a[1], 1), max(b[1], 1)
    p = (a[0] + b[0]) / (n + m)
    return abs(a[0] / n - b[0] / m) > 4.9 * math.sqrt(max(p * (1 - p), 1e-9) * (1 / n + 1 / m))

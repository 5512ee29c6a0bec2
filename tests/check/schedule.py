# SPDX-License-Identifier: Apache-2.0
"""Runs tests side by side, those that measure cost alone, and once more what may have failed by chance."""
import collections
import os
import select
import time

from result import Result
from running import Running

LIMITS = {"fast": 180, "full": 900, "long": 3 * 3600}  # seconds of a test, by its tier
BESIDE = 1  # more tests at once than there are CPUs, as each waits at times
UNKNOWN = 60  # seconds that a script is taken to need of which nothing is known


class Entry:
    """A test to run; before: the result of its first run, which failed."""

    def __init__(self, test, before=None):
        self.test, self.before = test, before
        self.alone = test.alone or before is not None


class Schedule:
    """tier: that runs. env: of the tests. slowness: of machine.py. limit: seconds of each test in place of LIMITS.
    known: {name: seconds} of an earlier run. stop: behind the first failure. watch(running, now) is called often."""

    def __init__(self, tier, env, slowness, limit=None, known=None, stop=False, watch=lambda running, now: None):
        self.tier, self.env, self.slowness, self.limit, self.stop, self.watch = tier, env, slowness, limit, stop, watch
        self.known = known or {}
        self.jobs = len(os.sched_getaffinity(0)) + BESIDE
        self.running = []
        self.left_out = []  # tests for which there was no time

    def run(self, tests, end=float("inf")):
        """The result of each test, in the order in which they end; none is begun that would not be done by `end`."""
        queue = collections.deque(Entry(t) for t in sorted(tests, key=lambda t: (t.alone, -self.needs(t))))
        try:
            while queue or self.running:
                yield from self._fill(queue, end)
                for entry, result in self._ended():
                    if result.failed and result.test.measures and not entry.before:
                        queue.insert(0 if self.stop else len(queue), Entry(entry.test, result))
                        continue
                    result.before, result.flaky = entry.before, bool(entry.before) and not result.failed
                    yield result
                    if result.failed and self.stop:
                        return
        finally:
            for _, r in self.running:
                r.end()

    def needs(self, test):
        return self.known.get(test.name, UNKNOWN if not test.source.endswith(".c") else 1) * self.slowness

    def limit_of(self, test):
        """Of a test that is not of this tier, as one that covers a change, its own tier's."""
        return self.limit or LIMITS[self.tier if self.tier in test.tiers else test.tiers[0]]

    def _fill(self, queue, end):
        """Begins what may run now. The results of tests that can't be started."""
        while queue and len(self.running) < self.jobs:
            if self.running and (queue[0].alone or self.running[0][0].alone):
                return
            entry = queue.popleft()
            if time.monotonic() + self.needs(entry.test) > end:
                self.left_out.append(entry.test)
                continue
            try:
                if not entry.test.command:
                    raise FileNotFoundError
                self.running.append((entry, Running(entry.test, self.limit_of(entry.test) * self.slowness, self.env)))
            except OSError as e:
                result = Result(entry.test)
                result.fail(f"cannot be run: {e.strerror}" if entry.test.command else "was not built")
                yield result

    def _ended(self):
        """Waits a moment. (entry, result) of each test that has ended."""
        running = [r for _, r in self.running]
        wait = 0.02 if any(r.closed for r in running) else 0.5
        select.select([r.process.stdout for r in running if not r.closed], [], [], wait if running else 0)
        now = time.monotonic()
        for pair in list(self.running):
            pair[1].read()
            if pair[1].done(now):
                self.running.remove(pair)
                yield pair[0], pair[1].result
        self.watch([r for _, r in self.running], now)

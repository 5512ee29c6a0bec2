# SPDX-License-Identifier: Apache-2.0
"""What a run of tests prints."""
import sys

HEARTBEAT = 60  # seconds between two lines about a test that runs
SLOWEST = 20


class Screen:
    """One line that is rewritten, on a terminal; elsewhere a line a minute."""

    def __init__(self):
        self.live = sys.stdout.isatty()
        self.shown = False
        self.beats = {}

    def watch(self, running, now):
        if self.live:
            text = "  ".join(f"  {now - r.start:6.1f} s  {r.result.name}" for r in running)
            sys.stdout.write("\r\033[K" + text[:100])
            sys.stdout.flush()
            self.shown = True
            return
        for r in running:
            if now - self.beats.get(r.mark, r.start) > HEARTBEAT:
                self.say(f"  ... {r.result.name} has been running for {now - r.start:.0f} s")
                self.beats[r.mark] = now

    def say(self, text):
        if self.shown:
            sys.stdout.write("\r\033[K")
            self.shown = False
        print(text, flush=True)

    def result(self, r):
        parts = [f"{r.passed} passed"]
        if r.failed:
            parts.append(f"{len(r.failed)} FAILED")
        if r.skipped:
            parts.append(f"{len(r.skipped)} skipped")
        self.say(f"  {r.seconds:6.1f} s  {r.name}: {', '.join(parts)}")
        for what, why in r.skipped:
            self.say(f"            skipped: {what}: {why}")
        if r.before:
            self._printed(r.before, "the first time")
        if r.failed:
            self._printed(r, "again" if r.before else "")

    def _printed(self, r, when):
        self.say(f"------ {r.name} printed{' ' + when if when else ''}:")
        self.say(r.output.decode("utf-8", "replace").rstrip("\n"))
        self.say("------")
        for line in r.reasons():
            self.say(line)

    def slowest(self, results, elapsed):
        self.say(f"\n{len(results)} tests in {elapsed:.0f} s, {sum(r.cpu for r in results):.0f} s of CPU time; the slowest:\n"
                 "   seconds       CPU")
        for r in sorted(results, key=lambda r: -r.seconds)[:SLOWEST]:
            self.say(f"  {r.seconds:8.1f}  {r.cpu:8.1f}  {r.name}")

    def summary(self, results, left_out):
        """The last lines. True: all is well."""
        failed = sum(len(r.failed) for r in results)
        passed = sum(r.passed for r in results)
        if failed:
            self.say("\nfailed:")
        for r in results:
            for line in r.reasons():
                self.say("  " + line)
        for test in left_out:
            self.say(f"not run, for want of time: {test.name}")
        for r in results:
            if r.flaky:
                self.say(f"flaky: {r.name}")
        self.say(f"{passed} passed, {failed} failed, {sum(len(r.skipped) for r in results)} skipped")
        return bool(passed) and not failed

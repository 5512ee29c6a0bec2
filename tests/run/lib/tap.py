# SPDX-License-Identifier: Apache-2.0
"""TAP for tests in Python: each check is a line, and the last lines say what failed and why."""
import sys

REASON_LINES = 4


class Tap:
    def __init__(self):
        self.n = 0
        self.failures = []

    def check(self, what, ok, why=""):
        """One check; why (a text, or anything that has one) is printed if it failed."""
        self.n += 1
        print("%s %d - %s" % ("ok" if ok else "not ok", self.n, what), flush=True)
        if not ok:
            why = str(why)
            if why:
                self.note(why)
            self.failures.append((what, why))
        return ok

    def skip(self, what, why):
        self.n += 1
        print("ok %d - %s # SKIP %s" % (self.n, what, why), flush=True)

    @staticmethod
    def note(text):
        print("# " + str(text).replace("\n", "\n# "), flush=True)

    def end(self):
        """Prints the plan and each failure again with the first and the last lines of its reason; exits."""
        print("1..%d" % self.n)
        for what, why in self.failures:
            lines = [line for line in why.splitlines() if line.strip()]
            if len(lines) > REASON_LINES:
                lines = lines[:1] + lines[1 - REASON_LINES:]
            self.note("failed: " + "\n    ".join([what] + lines))
        sys.exit(1 if self.failures else 0)

# SPDX-License-Identifier: Apache-2.0
"""What a test printed, counted (TAP), and why it failed."""
import re

LINE = re.compile(r"^(not ok|ok)\b\s*(\d*)\s*-?\s*(.*)$")
SKIP = re.compile(r"\s*#\s*skip\S*\s*(.*)$", re.I)
REASON_LINES = 5


class Result:
    def __init__(self, test):
        self.test, self.name = test, test.name
        self.passed = 0
        self.failed = []  # (check, lines that say why)
        self.skipped = []
        self.output = b""
        self.seconds = self.cpu = 0.0
        self.before = None  # the result of the first time, where it ran again
        self.flaky = False  # it failed the first time alone

    def count(self, status, note=""):
        """Reads the TAP. note: why it was ended. A program that fails, or shows no test at all, is a failure."""
        lines = self.output.decode("utf-8", "replace").splitlines()
        self._read(lines)
        if note:
            self.fail(note, lines)
        elif status and not self.failed:
            self.fail(f"ended with signal {-status}" if status < 0 else f"exit {status}", lines)
        elif not self.passed and not self.failed and not self.skipped:
            self.fail("printed no test", lines)

    def _read(self, lines):
        reason = ""
        why = None  # of the check that failed last: the comments behind it
        for line in lines:
            if line.startswith("# skip:"):
                reason = line[len("# skip:"):].strip()
            found = LINE.match(line)
            if line.startswith("#") and why is not None:
                why.append(line.lstrip("# "))
            if line.startswith("1.."):
                why = None
            if found:
                why = self._check(found, reason)

    def _check(self, found, reason):
        what = found.group(3)
        skip = SKIP.search(what)
        if found.group(1) == "not ok":
            self.failed.append((what, []))
            return self.failed[-1][1]
        if skip:
            because = skip.group(1) if skip.group(1) not in ("", "see above") else reason
            self.skipped.append((SKIP.sub("", what), because))
            if not because:
                self.fail(f"{SKIP.sub('', what)}: skipped without a reason")
        else:
            self.passed += 1
        return None

    def fail(self, what, output=()):
        """A failure that no line of TAP says; the last lines of the output may."""
        self.failed.append((what, list(output[-REASON_LINES:])))

    def reasons(self):
        for what, why in self.failed:
            yield f"{self.name}: {what}"
            if len(why) > REASON_LINES:
                why = why[:1] + ["..."] + why[2 - REASON_LINES:]
            yield from ("        " + line[:500] for line in why)

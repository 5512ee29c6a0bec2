# SPDX-License-Identifier: Apache-2.0
"""A test under way: started, read, ended with all that it has started."""
import glob
import itertools
import os
import signal
import subprocess
import time

from result import Result

MARK = "FUSEE_CHECK_MARK"  # in the environment of all that a test starts, whatever session it makes itself
LEAVES = 2  # seconds in which what a test started may end behind it
CLOSES = 10  # and it itself, once it has closed its output
numbers = itertools.count()


def heed_interrupts():
    """In the child: a shell's job in the background ignores SIGINT, and so would all that tests interrupt."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def marked(mark):
    """{pid: command line} of processes that have the mark in their environment; not those that have ended."""
    found, word = {}, ("%s=%s" % (MARK, mark)).encode()
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, "rb") as f:
                if word not in f.read().split(b"\0"):
                    continue
            with open(path[:-len("environ")] + "cmdline", "rb") as f:
                found[int(path.split("/")[2])] = f.read().replace(b"\0", b" ").decode("utf-8", "replace").strip()
        except OSError:
            pass
    return found


class Running:
    def __init__(self, test, limit, env):
        self.test, self.limit = test, limit
        self.result = Result(test)
        self.start = time.monotonic()
        self.closed = self.ended = None  # when its output ended, and it itself
        self.status = None
        self.note = ""  # why it was killed
        self.mark = "%d.%d" % (os.getpid(), next(numbers))
        self.process = subprocess.Popen(test.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=heed_interrupts,
                                        env=dict(env, **{MARK: self.mark}))
        os.set_blocking(self.process.stdout.fileno(), False)

    def read(self):
        while not self.closed:
            try:
                data = os.read(self.process.stdout.fileno(), 65536)
            except BlockingIOError:
                return
            self.result.output += data
            if not data:
                self.closed = time.monotonic()

    def poll(self, flags=os.WNOHANG):
        if self.status is None:
            pid, status, used = os.wait4(self.process.pid, flags)
            if pid:
                self.status = self.process.returncode = os.waitstatus_to_exitcode(status)
                self.result.cpu = used.ru_utime + used.ru_stime
        return self.status is not None

    def done(self, now):
        """It has ended, whoever holds its output, and so has what it started; or it is killed now for not ending."""
        if self.ended is None:
            if self.poll():
                self.read()
            elif now - self.start > self.limit:
                self.note = f"not done after {self.limit:.0f} s, killed"
            elif self.closed and now - self.closed > CLOSES:
                self.note = "closed its output and went on, killed"
            else:
                return False
            self.ended = now
            self.result.seconds = now - self.start
        left = {} if self.note else marked(self.mark)
        if left and now - self.ended < LEAVES:
            return False
        self.end()
        self.result.count(self.status, self.note)
        if left:
            self.result.fail(f"left {len(left)} processes behind, killed", [f"{p}: {c}" for p, c in left.items()])
        return True

    def end(self):
        """Kills the test and what it started."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        for pid in marked(self.mark):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.poll(0)
        self.process.stdout.close()

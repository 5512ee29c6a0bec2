# SPDX-License-Identifier: Apache-2.0
"""What tests that boot a systemd by lib/boot share."""
import subprocess
import time

from agent import children
from evidence import within  # noqa: E402


def unified():
    """Where the cgroup2 hierarchy is mounted; None: nowhere."""
    with open("/proc/mounts") as f:
        for line in f:
            _, at, kind = line.split()[:3]
            if kind == "cgroup2":
                return at
    return None


class Booted:
    """proc is lib/boot, log the file of its output, run(*words) a command in the machine. init is systemd's process, as a
    word; None: it has none yet."""
    init = None

    def up(self, seconds=300):
        """Waits until systemd has started what it is to start."""
        end = time.time() + within(seconds)
        while time.time() < end and self.proc.poll() is None:
            self.init = next(map(str, children(self.proc.pid)), None)
            # its PID namespace and root are there only once systemd is
            if self.init and self.systemctl("is-system-running").strip() in ("running", "degraded"):
                return True
            time.sleep(0.3)
        return False

    def systemctl(self, word):
        try:
            return self.run("systemctl", word).stdout
        except subprocess.TimeoutExpired as e:
            return str(e)

    def state(self):
        """For a failure: what it said, and what it waits for."""
        with open(self.log, errors="replace") as f:
            said = f.read()[-2000:]
        if self.init:
            said += self.systemctl("is-system-running") + self.systemctl("list-jobs")
        return "%s, child %s: %s" % (self.proc.poll(), self.init, said)

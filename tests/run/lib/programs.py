# SPDX-License-Identifier: Apache-2.0
"""Programs that run as long as a test wants them, and what an agent's /metrics count."""
import contextlib
import re
import subprocess
import urllib.request

from evidence import recorded  # noqa: F401


@contextlib.contextmanager
def running(*commands, **more):
    """The processes of these commands; they are killed behind the block, however that ends."""
    started = []
    try:
        for command in commands:
            started.append(subprocess.Popen(command, **more))
        yield started
    finally:
        for p in started:
            p.kill()
            p.wait()


def metric(port, pattern):
    """The sum of the metrics whose name and labels are that regular expression."""
    with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % port) as f:
        return sum(float(n) for n in re.findall(r"^%s(?:\{.*\})? ([\d.e+]+)$" % pattern, f.read().decode(), re.M))

# SPDX-License-Identifier: Apache-2.0
"""Programs that run as long as a test wants them, and what an agent's /metrics count."""
import contextlib
import re
import signal
import subprocess
import tempfile
import urllib.request

import evidence


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


def recorded(command, pids, cpu, env=None):
    """fusee record of what is no -p, until each of these processes has used `cpu` seconds under it, or it ends itself.
    pids: or a function, called once it samples, that starts them. -> (exit status, what it said)"""
    with tempfile.TemporaryFile("w+") as said:
        recorder = subprocess.Popen(command, stdout=said, stderr=said, env=env)

        def so_far():
            said.seek(0)
            return said.read()
        if evidence.until(lambda: recorder.poll() is not None or evidence.SAMPLES in so_far(), 60) and recorder.poll() is None:
            begin = {pid: evidence.cpu_s(pid) for pid in (pids() if callable(pids) else pids)}
            evidence.until(lambda: recorder.poll() is not None or
                           all(evidence.cpu_s(pid) - t >= cpu for pid, t in begin.items()), 60 + cpu)
            recorder.send_signal(signal.SIGINT)
        try:
            recorder.wait(evidence.within(60))
        except subprocess.TimeoutExpired:
            recorder.kill()
            recorder.wait()
        return recorder.returncode, so_far()

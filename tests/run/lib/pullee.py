# SPDX-License-Identifier: Apache-2.0
"""An agent that profiles are pulled from, and what a test asks of one."""
import os
import time
import urllib.error
import urllib.request

from agent import Agent, free_port, pprof


class Pullee:
    """script: with %(port)d, and what `values` has."""

    def __init__(self, build, script, **values):
        self.port, self.template = free_port(), script
        self.agent = Agent(build, self.script(**values))
        self.top = "http://127.0.0.1:%d" % self.port
        self.url = self.top + "/debug/pprof/profile"

    def script(self, **values):
        return self.template % dict(values, port=self.port)

    def reload(self, **values):
        self.agent.write(self.script(**values))
        return self.agent.ask("reload")

    def get(self, query, path=None):
        """-> (status, headers, body)"""
        try:
            with urllib.request.urlopen((path or self.url) + query, timeout=120) as r:
                return r.status, r.headers, r.read()
        except urllib.error.HTTPError as e:
            return e.code, e.headers, e.read()

    def insist(self, query):
        """A puller that comes again when it is told to. -> (its answer, the seconds that it was told to wait, each time)"""
        waits = []
        while True:
            got = self.get(query)
            if got[0] != 503:
                return got, waits
            waits.append(int(got[1]["Retry-After"]))
            time.sleep(waits[-1])

    def metric(self, name):
        body = self.get("", self.top + "/metrics")[2].decode()
        return sum(float(line.split()[-1]) for line in body.splitlines() if line.startswith(name))


def read(work, body):
    path = os.path.join(work, "pulled.pb.gz")
    with open(path, "wb") as f:
        f.write(body)
    return pprof.read(path)


def is_loss(sample):
    return any(f.name.startswith("[lost: ") for f in sample.frames)

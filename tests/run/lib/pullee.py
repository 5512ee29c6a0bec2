# SPDX-License-Identifier: Apache-2.0
"""An agent that profiles are pulled from, and what a test asks of one."""
import http.client
import os
import urllib.error
import urllib.request

from agent import Agent, free_port, pprof
from evidence import pause, within


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
            with urllib.request.urlopen((path or self.url) + query, timeout=within(120)) as r:
                return r.status, r.headers, r.read()
        except urllib.error.HTTPError as e:
            return e.code, e.headers, e.read()

    def begin(self, query):
        """A request for a profile that is under way when this returns. -> its connection"""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=within(120))
        c.request("GET", "/debug/pprof/profile" + query)
        for _ in range(2):
            self.get("", self.top + "/healthz")  # the agent answers it behind the other
        return c

    @staticmethod
    def answer(connection):
        """-> (status, headers, body)"""
        r = connection.getresponse()
        got = r.status, r.headers, r.read()
        connection.close()
        return got

    def insist(self, query):
        """A puller that comes again when it is told to. -> (its answer, the seconds that it was told to wait, each time)"""
        waits = []
        while True:
            got = self.get(query)
            if got[0] != 503:
                return got, waits
            waits.append(int(got[1]["Retry-After"]))
            pause(waits[-1], "so it was told")

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

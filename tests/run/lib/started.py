# SPDX-License-Identifier: Apache-2.0
"""What a test starts, and ends whatever comes; and what an agent's /metrics say."""
import contextlib
import os
import signal
import socket
import subprocess
import sys

import evidence
from agent import Agent
from programs import running as programs

HERE = os.path.dirname(os.path.abspath(__file__))


@contextlib.contextmanager
def agent(build, script, **more):
    """An agent, which has been killed at the end if it has not ended."""
    it = Agent(build, script, **more)
    try:
        yield it
    finally:
        it.stop(signal.SIGKILL)


@contextlib.contextmanager
def http_server(folder):
    """The port of an http_server.py that keeps what it gets in this folder."""
    os.makedirs(folder)
    with programs([sys.executable, os.path.join(HERE, "http_server.py"), folder],
                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as (server,):
        yield int(server.stdout.readline())


def metrics(path):
    """The text of /metrics at a socket's path."""
    got = b""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(evidence.within(30))
        s.connect(path)
        s.sendall(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")
        while data := s.recv(65536):
            got += data
    return got.decode()

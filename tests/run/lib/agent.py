# SPDX-License-Identifier: Apache-2.0
"""An agent of the test's own: started with a script, asked over its control socket, ended by pid."""
import atexit
import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "accuracy"))
import pprof  # noqa: E402
from evidence import cpu_s, until, within  # noqa: E402,F401
from tap import Tap  # noqa: E402,F401

BURNER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static volatile unsigned long sink;
static double cpu(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}
__attribute__((noinline)) static void heavy(void) { for (int i = 0; i < 20000; i++) sink += i; }
__attribute__((noinline)) static void light(void) { for (int i = 0; i < 20000; i++) sink ^= i; }
/* seven parts heavy, three light, in slices that are in step with no rate; until it is killed */
int main(void)
{
	double at = cpu(), end;
	srand(7);
	for (;;) {
		double slice = (20 + rand() % 40) / 1000.0;
		for (end = at + 0.7 * slice; (at = cpu()) < end;) heavy();
		for (end = at + 0.3 * slice; (at = cpu()) < end;) light();
	}
}
"""


def build_burners(folder, *names):
    source = os.path.join(folder, "burner.c")
    with open(source, "w") as f:
        f.write(BURNER)
    for name in names:
        subprocess.run(["gcc", "-O1", "-o", os.path.join(folder, name), source], check=True)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def children(pid):
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
            return [int(child) for child in f.read().split()]
    except OSError:
        return []


def helpers(pid, word):
    """Processes with this argument that a process of fusee started, or a child of it."""
    found = []
    for child in children(pid):
        try:
            with open("/proc/%d/cmdline" % child) as f:
                found += [child] if word in f.read().split("\0") else helpers(child, word)
        except OSError:
            pass
    return found


class Agent:
    def __init__(self, build, script, env=None, args=(), before=(), fusee=None):
        self.folder = tempfile.mkdtemp(prefix="fusee-agent-")
        os.chmod(self.folder, 0o755)
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        self.script = os.path.join(self.folder, "fusee.lua")
        self.socket = os.path.join(self.folder, "control")
        self.log = os.path.join(self.folder, "log")
        self.write(script)
        self.fusee = fusee or os.path.join(os.path.abspath(build), "fusee")
        self.proc = subprocess.Popen([*before, self.fusee, "run", "-c", self.script, *args],
                                     stdout=open(self.log, "w"), stderr=subprocess.STDOUT,
                                     env=dict(os.environ, **(env or {})))

    def write(self, script):
        with open(self.script + ".new", "w") as f:
            f.write(script + '\ncontrol { path = "%s" }\n' % self.socket)
        os.rename(self.script + ".new", self.script)

    def said(self):
        with open(self.log, errors="replace") as f:
            return f.read()

    def ready(self, seconds=60):
        return until(lambda: "are profiled at" in self.said() or self.proc.poll() is not None,
                        seconds) and self.proc.poll() is None

    def ask(self, command, seconds=60):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(within(seconds))
            s.connect(self.socket)
            s.sendall(command.encode() + b"\n")
            got = b""
            while not got.endswith(b"\n"):
                data = s.recv(65536)
                if not data:
                    break
                got += data
        return json.loads(got)

    def stop(self, how=signal.SIGTERM, seconds=60):
        if self.proc.poll() is None:
            self.proc.send_signal(how)
        try:
            return self.proc.wait(within(seconds))
        except subprocess.TimeoutExpired:
            self.proc.kill()
            self.proc.wait()
            return "it had to be killed"


def events_of(agent):
    """How many perf events it has open, those for rings and records included."""
    n = 0
    for fd in glob.glob("/proc/%d/fd/*" % agent.proc.pid):
        try:
            n += "perf_event" in os.readlink(fd)
        except FileNotFoundError:  # closed meanwhile
            pass
    return n


def profiles(folder):
    return [pprof.read(p) for p in sorted(glob.glob(os.path.join(folder, "*.pb.gz")))]


def cpu_ns(pid):
    """CPU time of a process's first thread, in ns."""
    with open("/proc/%d/schedstat" % pid) as f:
        return int(f.read().split()[0])

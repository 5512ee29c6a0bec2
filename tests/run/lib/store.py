# SPDX-License-Identifier: Apache-2.0
"""Stores of profiles: windows that a test makes, pushes and asks for; writers that are killed; buckets."""
import contextlib
import glob
import json
import os
import subprocess
import sys

import mkpprof
import s3_moto
from evidence import pause, within

HERE = os.path.dirname(os.path.abspath(__file__))
ENVIRONMENT = dict({k: v for k, v in os.environ.items() if not k.startswith("AWS_")}, TZ="UTC", PAGER="cat")
OWN_KEYS = "AKTEST", "secret/of+AKTEST"  # of s3_server.py
PLAIN = "parquet:keep=0,max_size=0,compact=0s,"  # a sink that removes and merges nothing

PROGRAM = r"""
#include <time.h>
static volatile unsigned long sink;
static inline __attribute__((always_inline)) void inlined(int n) { for (int i = 0; i < n; i++) sink += i; }
__attribute__((noinline)) void even(int n) { inlined(n); }
__attribute__((noinline)) void odd(int n, int depth) { if (depth) odd(n, depth - 1); else for (int i = 0; i < n; i++) sink ^= i; sink++; }
int main(void)
{
	while (clock() < CLOCKS_PER_SEC) { even(20000); odd(10000, sink % 5); }
	return 0;
}
"""


def environment(keys=None, **more):
    return dict(ENVIRONMENT, **({"AWS_ACCESS_KEY_ID": keys[0], "AWS_SECRET_ACCESS_KEY": keys[1]} if keys else {}), **more)


class Fusee:
    """Calls fusee: -> (exit status, what it printed, what it said)."""

    def __init__(self, build):
        self.path = os.path.join(build, "fusee")

    def __call__(self, *args, keys=None, stdin=subprocess.DEVNULL, **more):
        r = subprocess.run([self.path, *args], stdin=stdin, capture_output=True, text=True, timeout=within(300),
                           env=environment(keys, **more))
        return r.returncode, r.stdout, r.stderr

    def push(self, files, sink, *labels, keys=None):
        """What must arrive."""
        code, out, said = self(*push_words(files, sink, *labels), keys=keys)
        if code:
            raise RuntimeError(out + said)

    def recorded(self, work):
        """-> a profile of 1 s of a program with inlined functions, deep stacks and the kernel's frames."""
        source, program, path = (os.path.join(work, n) for n in ("hot.c", "hot", "hot.pb.gz"))
        with open(source, "w") as f:
            f.write(PROGRAM)
        subprocess.run(["gcc", "-g", "-O1", "-o", program, source], check=True)
        code, out, said = self("record", "-q", "-F", "299", "-o", path, "--", program)
        if code:
            raise RuntimeError(out + said)
        return path

    def kill_push(self, r, seconds, *words, **more):
        """fusee push that SIGKILL ends at some moment of so many seconds, which it needs for all."""
        p = subprocess.Popen([self.path, *push_words(*words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)
        pause(r.random() * seconds, "it is to be killed at any moment")
        p.kill()
        p.wait()


def push_words(files, sink, *labels):
    return ["push", "-q", *files, "--sink", sink, *(word for label in labels for word in ("--label", label))]


def window(path, lines, at, unit="nanoseconds", **more):
    """A profile of folded stacks."""
    with open(path, "wb") as f:
        f.write(mkpprof.profile(lines, unit, at, **more))
    return path


def fill(fusee, work, sinks, lines_of, windows, keys=None):
    """Windows of three services; one of them has no label "pod". sinks: where they go. lines_of(service, window),
    windows: [(number, its time)]."""
    for service in ("web", "db", "mail"):
        files = [window(os.path.join(work, "%s-%d.pb.gz" % (service, w)), lines_of(service, w), at) for w, at in windows]
        for sink in sinks:
            fusee.push(files, sink, "service_name=" + service, "host=h1", *(["pod=%s-0" % service] if service != "db" else []),
                       keys=keys)


def parquet_files(folder, table="samples"):
    return sorted(glob.glob("%s/%s/*/*/*.parquet" % (folder, table)))


def damage(path, at):
    """Changes a bit of the byte at that place."""
    with open(path, "rb") as f:
        data = bytearray(f.read())
    data[at] ^= 1
    with open(path, "wb") as f:
        f.write(data)


class S3Server:
    """lib/s3_server.py until the end of the with statement."""

    def __init__(self, folder):
        os.makedirs(folder)
        self.folder = folder
        self.proc = subprocess.Popen([sys.executable, os.path.join(HERE, "s3_server.py"), folder], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True)
        self.url = "http://127.0.0.1:%d" % int(self.proc.stdout.readline())

    def put(self, name, text):
        with open(os.path.join(self.folder, name), "w") as f:
            f.write(text)

    def faults(self, *lines):
        self.put("faults", "".join(line + "\n" for line in lines))

    def objects(self, table):
        return sorted(glob.glob(os.path.join(self.folder, "objects", table, "**", "*.parquet"), recursive=True))

    def requests(self):
        """Those since the last call."""
        path = os.path.join(self.folder, "log")
        found = []
        if os.path.exists(path):
            with open(path) as f:
                found = [json.loads(line) for line in f]
        self.put("log", "")
        return found

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.proc.stdin.close()
        self.proc.stdout.close()
        self.proc.wait()


@contextlib.contextmanager
def moto(build, work, tap, what):
    """-> a server of moto with a bucket 'profiles', and the keys of a user; (None, None) where it cannot be fetched."""
    interpreter, why = s3_moto.python(build)
    if not interpreter:
        tap.skip(what, why)
        yield None, None
        return
    with open(os.path.join(work, "moto.log"), "w") as log:
        server = s3_moto.Moto(interpreter, log)
        try:
            keys = server.do("make", "profiles", **{"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any"}).split()
            yield server, tuple(keys)
        finally:
            server.stop()


def needs_parquet(build, tap, what):
    if not os.path.exists(os.path.join(build, "plugins", "parquet.so")):
        tap.skip(what, "sink.parquet was not built: headers of libcurl or libssl are not installed")
        tap.end()

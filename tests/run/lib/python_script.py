# SPDX-License-Identifier: Apache-2.0
"""A Python script whose functions and lines a profile is held against, and what records it."""
import collections
import contextlib
import os
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "accuracy"))
import pprof  # noqa: E402
from evidence import SAMPLES, until, within  # noqa: E402
from pythons import pythons  # noqa: E402

HZ = 499
EVAL = "_PyEval_EvalFrameDefault"
PROFILE = "p.pb.gz"

# line numbers are checked: work() is at 2 to 5, outer() calls it at 9, the module outer() at 14
SCRIPT = """def work(n):
    x = 0
    for i in range(n):
        x += i % 7
    return x


def outer(n):
    return work(n)


import os, sys, time; start = time.process_time()  # noqa
while time.process_time() < start + float(sys.argv[1]):
    outer(3000)
"""
CHAIN = [("<module>", "work.py", {14}), ("outer", "work.py", {9}), ("work", "work.py", {1, 2, 3, 4, 5})]


def python_frames(sample):
    return [f for f in sample.frames if not f.address and not f.file and f.source]


def is_beginning(frames, chain):
    """Are the frames a beginning of the chain, at its lines?"""
    return len(frames) <= len(chain) and all(
        f.name == name and os.path.basename(f.source) == file and (f.line in lines or f is frames[-1])
        for f, (name, file, lines) in zip(frames, chain))


def run(*args, **env):
    return subprocess.run(list(args), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=within(180),
                          env=dict(os.environ, **env))


def write(name, text):
    with open(name, "w") as f:
        f.write(text)


def compiled(name, text, *options):
    """-> has a C program been made of it?"""
    write(name + ".c", text)
    return run("gcc", "-O1", "-w", "-o", name, name + ".c", *options).returncode == 0


class Counts:
    """Samples of a profile that show the script: at the end of its chain, on the way, or wrong; and those that were lost."""

    def __init__(self, path=PROFILE, chain=CHAIN):
        profile = pprof.read(path)
        n = [t[0] for t in profile.sample_types].index("samples")
        self.lost = sum(values[n] for values in profile.lost.values())
        self.full = self.part = self.wrong = self.bare = 0
        self.first = collections.Counter()
        for s in profile.samples:
            frames = python_frames(s)
            if not any(os.path.basename(f.source) == chain[0][1] for f in frames):
                self.bare += s.values[n] * (not frames and any(f.name.startswith(EVAL) for f in s.frames))
                continue
            while frames and os.path.basename(frames[0].source) != chain[0][1]:
                frames = frames[1:]
            if not is_beginning(frames, chain):
                self.wrong += s.values[n]
                self.first["; ".join("%s %s:%d" % (f.name, f.source, f.line) for f in frames)] += s.values[n]
            elif len(frames) == len(chain) and frames[-1].line in chain[-1][2]:
                self.full += s.values[n]
            else:
                self.part += s.values[n]

    def __str__(self):
        return "%d in work(), %d above, %d wrong, %d without functions, %d lost %s" % (
            self.full, self.part, self.wrong, self.bare, self.lost, dict(self.first.most_common(3)))


class Recorder:
    def __init__(self, tap, build):
        self.tap, self.fusee = tap, os.path.join(build, "fusee")

    def record(self, *command, hz=HZ, **env):
        """fusee record of a command into PROFILE. -> its exit status and what was said"""
        return run(self.fusee, "record", "-F", str(hz), "-o", PROFILE, "--", *command, **env)

    @contextlib.contextmanager
    def beside(self, *options, said=SAMPLES, **env):
        """A recorder that samples while the block runs: until a SIGINT, if it has not ended by itself. -> its process"""
        with open("log", "w") as log:
            r = subprocess.Popen([self.fusee, "record", "-F", str(HZ), "-o", PROFILE, *options], stdout=log, stderr=log,
                                 env=dict(os.environ, **env))
            try:
                until(lambda: said in open("log").read() or r.poll() is not None, 60)
                yield r
                if r.poll() is None:
                    r.send_signal(signal.SIGINT)
                r.wait(within(120))
            finally:
                r.kill()
                r.wait()

    def check(self, what, counts, seconds, bare=0.02):
        """seconds: of CPU time that the script uses while it is sampled."""
        self.tap.check("%s: %d samples in work() and no false line" % (what, counts.full),
                       counts.full + counts.lost >= 0.8 * HZ * seconds and counts.full and not counts.wrong and
                       counts.part <= 0.1 * counts.full + 5 and (bare is None or counts.bare <= bare * counts.full + 5), counts)

    def check_command(self, what, seconds, *command, bare=0.25, **env):
        """A command that runs the script. bare: the interpreter's own start shows it without the script."""
        r = self.record(*command, **env)
        if r.returncode:
            return self.tap.check(what, False, r.stdout)
        return self.check(what, Counts(), seconds, bare)

    def check_attached(self, what, pid, go, seconds=1):
        """A script that waits for go()."""
        with self.beside("-p", str(pid)) as r:
            go()
            until(lambda: r.poll() is not None, 120)
        self.check(what, Counts(), seconds)


def waiting(*command):
    """-> a process that runs work.py for 1 s of CPU time once go() was called, and go()."""
    p = subprocess.Popen([*command, "wait.py", "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    p.stdout.readline()
    return p, p.stdin.close


def begin(tap, build):
    """-> the interpreters, [(path, version)], and a folder with the script, which is the current one; without them the test ends."""
    found = pythons()
    if not found or not os.path.exists(os.path.join(build, "plugins", "python.so")):
        tap.skip("Python", "no Python that the unwinder knows, or no unwinder, is here")
        tap.end()
    if '"name": "unwinding in BPF", "works": true' not in run(build + "/fusee", "doctor", "--json").stdout.replace('":"', '": "'):
        tap.skip("Python", "the kernel does not unwind here")
        tap.end()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    folder = tempfile.TemporaryDirectory()
    os.chdir(folder.name)
    os.chmod(folder.name, 0o755)
    write("work.py", SCRIPT)
    write("wait.py", "import runpy, sys\nprint(1, flush=True)\nsys.stdin.readline()\nrunpy.run_path('work.py', run_name='__main__')\n")
    return found, folder

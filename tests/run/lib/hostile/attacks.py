# SPDX-License-Identifier: Apache-2.0
"""The attacks of tests/run/hostile: each is a program or a function that an ordinary user runs."""
import contextlib
import glob
import os
import pwd
import shutil
import socket
import subprocess

import watch

HERE = os.path.dirname(os.path.abspath(__file__))
USER = "nobody"
GROUP = "nogroup"
AS_USER = ["setpriv", "--reuid", USER, "--regid", GROUP, "--clear-groups"]
SECONDS = 900  # after which a program ends by itself


class Attack:
    """name: for the command line; what: one line of the report; before: what it did at the first review."""
    together = True

    def __init__(self, name, what, before):
        self.name, self.what, self.before = name, what, before
        self.stage = None

    def missing(self):
        """Why it can't be made here, or nothing."""
        return ""

    def run(self):
        """Attacks for as long as self.stage.hold() takes. What went wrong beside what is measured for all attacks, or
        nothing."""
        raise NotImplementedError


class Program(Attack):
    """A program of the folder, as another user, in a folder of that user's own: COMMAND.. SECONDS."""

    def __init__(self, name, what, before, *command, copies=1):
        super().__init__(name, what, before)
        self.command, self.copies = command, copies

    def start(self):
        where = os.path.join(self.folder, "by-" + self.name)
        os.makedirs(where, exist_ok=True)
        shutil.chown(where, USER, GROUP)
        return [subprocess.Popen([*AS_USER, *self.command, str(SECONDS)], cwd=where, start_new_session=True,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                for _ in range(self.copies)]

    def run(self):
        return together([self], self.stage.hold)


def together(chosen, hold):
    started = [(a, a.start()) for a in chosen if isinstance(a, Program)]
    try:
        problem = hold()
        ended = [a.name for a, programs in started if all(p.poll() is not None for p in programs)]
        return problem or ("ended by themselves: %s" % ended if ended else "")
    finally:
        for _, programs in started:
            for p in programs:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(p.pid, 9)  # of its own session: what it started too
                p.wait()


# ---- on the agent's sockets ----

class Idle(Attack):
    together = False

    def run(self):
        clients = [socket.create_connection(("127.0.0.1", self.stage.port)) for _ in range(60)]
        for c in clients[::2]:
            c.sendall(b"GET /healthz HTTP/1.1\r\nX: ")
        problem = self.stage.hold()
        for c in clients:
            c.close()
        return problem


class Flood(Attack):
    """Requests without a pause, some with answers that are not read."""
    together = False

    def run(self):
        unread = []

        def some():
            for n in range(10):
                with contextlib.suppress(OSError):
                    unread.append(socket.create_connection(("127.0.0.1", self.stage.port)))
                    unread[-1].sendall(b"GET /metrics HTTP/1.1\r\n\r\n" if n % 2 else b"x" * 9000)
            while len(unread) > 40:
                unread.pop(0).close()
        problem = self.stage.hold(meanwhile=some)
        for c in unread:
            c.close()
        return problem


class Host(Attack):
    together = False

    def run(self):
        foreign = watch.get(self.stage.port, "/metrics", "evil.example")
        own = watch.get(self.stage.port, "/metrics", "localhost")
        return "" if foreign[0] == 421 and own[0] == 200 else "evil.example: %s, localhost: %s" % (
            foreign[0], own[0])


class Control(Attack):
    """The control socket, from another user."""
    together = False

    def run(self):
        got = subprocess.run([*AS_USER, "python3", "-c",
                              "import socket,sys\ns = socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])",
                              self.stage.agent.socket], stderr=subprocess.PIPE, text=True)
        return "" if "PermissionError" in got.stderr else "another user could connect: " + got.stderr[-200:]


class PerfMaps(Program):
    def run(self):
        problem = super().run()
        remove_maps()
        return problem


def remove_maps():
    for path in glob.glob("/tmp/perf-*.map"):
        with contextlib.suppress(OSError):
            if os.lstat(path).st_uid == pwd.getpwnam(USER).pw_uid:
                os.unlink(path)


class Names(Program):
    """Names of threads with escape sequences and U+202E, as `fusee ctl` prints them."""

    def run(self):
        return together([self], lambda: self.stage.hold() or self.printed())

    def printed(self):
        fusee = [self.stage.agent.fusee, "ctl", "-s", self.stage.agent.socket]
        text = subprocess.run(fusee + ["targets"], capture_output=True).stdout
        shown = [c for c in ("\x1b", "\u202e", "\x07") if c.encode() in text]
        return "ctl prints %r" % shown if shown else ""


def build(folder, build_folder):
    """Compiles the programs into the folder; the attacks, in the order in which they are run: those with many files
    first, as an agent keeps a file for 30 s."""
    program = os.path.join(folder, "attack")
    subprocess.run(["gcc", "-O1", "-pthread", "-o", program, os.path.join(HERE, "attack.c")], check=True)

    def of(name, what, before, copies=1):
        return Program(name, what, before, program, name, copies=copies)

    new = "not tried"
    loops = [os.path.join(folder, name) for name in ("cfa_loops", "cfa_loop.so")]
    subprocess.run(["gcc", "-D_GNU_SOURCE", "-O1", "-pthread", "-o", loops[0], os.path.join(HERE, "cfa_loops.c")], check=True)
    subprocess.run(["gcc", "-shared", "-nostdlib", "-Wl,--build-id=0x0102030405060708", "-o", loops[1],
                    os.path.join(HERE, "cfa_loop.s")], check=True)
    # whole seconds, as these two programs take them
    found = [
        Program("cfa-loops", "2: 1,000 libraries with CFA expressions that loop, in 40 threads", "/healthz silent "
                "for 63 s", "sh", "-c", 'exec %s %s . 1000 40 "${0%%.*}"' % tuple(loops)),
        Program("sparse-elfs", "3: 30 sparse ELF files with 900 MiB of .eh_frame", "no profile for 260 s", "sh", "-c",
                'exec python3 %s . 30 900 "${0%%.*}"' % os.path.join(HERE, "sparse_elf")),
        PerfMaps("perf-maps", "5a: 24 processes with a perf map of 31 MiB each", "the agent is killed for memory",
                 program, "perf-maps"),
        of("renames", "6: a file is renamed below a path of 4 KiB, mapped each time",
           "heap 86 to 322 MB, never given back"),
        of("memfds", "7: 40,000 memfds are mapped as code", "all descriptors in use, others' programs not readable"),
        of("truncated", "files that shrink while they are mapped", new),
        of("elves", "14,000 small ELF files of different content", new),
        of("sparse", "5b: a sparse ELF file of 1,000 MiB", "the worker dies for memory twice"),
        Idle("idle", "11: 60 idle clients of the HTTP server", "/healthz times out"),
        Host("host", "12: a foreign Host", "200"),
        Names("names", "13: names with U+202E and escape sequences", "U+202E passes to the terminal", program, "names"),
        of("execs", "14: execs with distinct names of 230 bytes", "heap 3 to 116 MB", copies=2),
        of("forks", "a fork storm", "held", copies=2),
        of("many-mappings", "20 processes with 30,000 mappings each", "held at 800 each"),
        of("threads", "a storm of threads with names", new),
        of("maps", "code is mapped and unmapped as fast as possible", new),
        of("deep", "stacks that are deeper than any limit", new),
        of("jit", "code without a file in ever new memory", new),
        of("stopped", "children that ptrace stops, and zombies", new),
        of("garbage", "stacks of random words", new),
        of("clones", "processes that share their memory", new),
        of("nested", "namespaces in each other, 30 deep", new),
        of("stacks", "stack pointers that lead anywhere", new),
        of("environments", "execs with 360 KB of environment", new),
        Flood("flood", "requests without a pause", new),
        Control("control", "the control socket, as another user", "held"),
    ]
    for attack in found:
        attack.folder = folder
    return found


def clean(folder):
    remove_maps()
    for path in glob.glob(os.path.join(folder, "by-*")):
        shutil.rmtree(path, ignore_errors=True)

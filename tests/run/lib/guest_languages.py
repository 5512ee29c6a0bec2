# SPDX-License-Identifier: Apache-2.0
"""Python and Ruby in a machine of tests/run/kernels: what they need there, and what a profile has to show of them.

Guests are emulated, and slow where others use the CPUs too: what counts is the share of the samples that were taken,
and a recording that met one of fusee's own limits of time is repeated.
"""
import base64
import os
import re
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "accuracy"))
import pprof  # noqa: E402
from pythons import pythons  # noqa: E402
from rubies import rubies  # noqa: E402

# lines of fusee's log that say that one of its limits of time was met; the same words as in the job below
LATE = re.compile("does not answer|does not come to an end|did not end within")
NO_PROGRAM = "interpreter without its program"  # of fusee's account: a language unwinder is missing

# each begins to count its CPU time when it runs; the lines are those of the chains below
PYTHON = """import sys, time; end = time.process_time() + float(sys.argv[1])  # noqa


def inner(n):
    x = 0
    for i in range(n):
        x += i % 7
    return x


def middle(n):
    return inner(n)


def outer(n):
    return sorted([n], key=middle)


while time.process_time() < end:
    outer(2000)
"""
RUBY = """def inner(n)
  x = i = 0
  while i < n
    x += i % 7
    i += 1
  end
  x
end

def middle(n)
  [n].each { |m| inner(m) }
end

def cpu
  Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
end

over = cpu + ARGV[0].to_f
middle(2000) while cpu < over
"""
# (function, line at which it calls the next), from the base to the leaf; what is in C stands between them
CHAINS = {"python": [("<module>", 20), ("outer", 16), ("middle", 12), ("inner", {4, 5, 6, 7, 8})],
          "ruby": [("<main>", 19), ("Object#middle", 11), ("block in Object#middle", 11),
                   ("Object#inner", {3, 4, 5})]}
BESIDE = {"ruby": {"Object#cpu"}}
NATIVE = {"python": "_PyEval_EvalFrameDefault", "ruby": "rb_vm_exec"}  # what the machine's frames are called
SCRIPTS = {"python": PYTHON, "ruby": RUBY}
FILES = {"python": "import os, sys, time\nfor m in list(sys.modules.values()):\n    print(getattr(m, '__file__', None))",
         "ruby": "puts $LOADED_FEATURES"}
OPTIONS = {"python": ["-I", "-S"], "ruby": ["-W0", "--disable=all"]}
RUN = {"python": "-c", "ruby": "-e"}

# in the guest: language NAME COMMAND...
JOB = r"""
language() {
	name=$1
	shift
	for try in 1 2 3; do # what starves does not read a file, or load a step, in fusee's limits of time
		FUSEE_DEBUG=1 part "$name" timeout 150 /fusee/fusee record -F 99 -o /tmp/$name.pb.gz \
			--stats /tmp/$name.json -- "$@" >/tmp/$name.log
		grep -q "does not answer\|does not come to an end\|did not end within" /tmp/$name.log || break
	done
	cat /tmp/$name.log
	echo "=== $name stats"
	cat /tmp/$name.json
	echo "=== $name profile"
	base64 /tmp/$name.pb.gz
}
"""


class Language:
    def __init__(self, kind, path, version):
        self.kind, self.path, self.version = kind, path, version
        self.title = "%s %d.%d.%d" % (kind.capitalize(), *version)
        self.name = "%s%d.%d" % (kind, *version[:2])
        self.script = "/opt/work." + ("py" if kind == "python" else "rb")

    def files(self):
        """What the interpreter reads before a script runs."""
        p = subprocess.run([self.path, *OPTIONS[self.kind], RUN[self.kind], FILES[self.kind]], stdout=subprocess.PIPE, text=True,
                           check=True)
        return [f for f in p.stdout.splitlines() if os.path.isfile(f) and os.path.isabs(f)]

    def add_to(self, image):
        for path in [self.path, *self.files()]:
            image.add(path)
        os.makedirs(os.path.dirname(image.root + self.script), exist_ok=True)
        image.write(self.script, SCRIPTS[self.kind])

    def command(self, seconds):
        return " ".join([self.path, *OPTIONS[self.kind], self.script, str(seconds)])


def languages(every):
    """One of each minor version, or one Python and one Ruby: the distribution's."""
    found = []
    for kind, known in (("python", pythons()), ("ruby", rubies())):
        known.sort(key=lambda item: not item[0].startswith("/usr/bin/"))
        first = {version[:2]: Language(kind, path, version) for path, version in reversed(known)}
        some = [first[known[0][1][:2]]] if known else []
        found += [first[v] for v in sorted(first)] if every else some
    return found


def damage(plugin, to):
    """A copy of the plugin whose BPF half, which ends with the step, ends with an instruction that no kernel knows."""
    with open(plugin, "rb") as f:
        data = bytearray(f.read())
    at = data.find(b"\x7fELF", 1)
    while struct.unpack_from("<H", data, at + 18)[0] != 247:  # EM_BPF
        at = data.find(b"\x7fELF", at + 1)
    sections, = struct.unpack_from("<Q", data, at + 40)
    _, n, names = struct.unpack_from("<HHH", data, at + 58)
    headers = [struct.unpack_from("<IIQQQQ", data, at + sections + 64 * i) for i in range(n)]
    text = next(h for h in headers if data[at + headers[names][4] + h[0]:].startswith(b".text\0"))
    end = at + text[4] + text[5]
    data[end - 8:end] = b"\xff" * 8
    os.makedirs(os.path.dirname(to), exist_ok=True)
    with open(to, "wb") as f:
        f.write(data)


def add_to(image, build, every):
    """-> the languages that are in the image then."""
    found = [x for x in languages(every) if os.path.exists(os.path.join(build, "plugins", x.kind + ".so"))]
    for x in found:
        x.add_to(image)
    if every and found:
        name = found[0].kind + ".so"
        damage(os.path.join(build, "plugins", name), image.root + "/refused/" + name)
    return found


def job(found, seconds, refused):
    lines = ["language %s %s" % (x.name, x.command(seconds)) for x in found]
    if refused:
        lines.append("language refused %s" % found[0].command(seconds))
        lines[-1] = "export FUSEE_PLUGIN_PATH=/refused:/fusee/plugins\n%s\nunset FUSEE_PLUGIN_PATH" % lines[-1]
    return JOB + "\n".join(lines) + "\n"


class Counts:
    """The samples of a profile: of the innermost function, on the way to it, with frames that the script can't have there."""

    def __init__(self, text, kind, script):
        self.full = self.part = self.wrong = self.native = 0
        self.first = ""
        try:
            with tempfile.NamedTemporaryFile(suffix=".pb.gz") as f:
                f.write(base64.b64decode(text))
                f.flush()
                profile = pprof.read(f.name)
        except (ValueError, OSError, IndexError) as e:
            self.first = "no profile: %s" % e
            return
        n = [t[0] for t in profile.sample_types].index("samples")
        for s in profile.samples:
            self.native += s.values[n] * any(f.name.startswith(NATIVE[kind]) for f in s.frames)
            self.add([f for f in s.frames if not f.address and not f.file and f.source == script and
                      f.name not in BESIDE.get(kind, ())], CHAINS[kind], s.values[n])

    def add(self, frames, chain, samples):
        if not frames:
            return
        calls = all(f.name == name and (f is frames[-1] or f.line == line) for f, (name, line) in zip(frames, chain))
        if not calls or len(frames) > len(chain):
            self.wrong += samples
            self.first = self.first or "; ".join("%s:%d" % (f.name, f.line) for f in frames)
        elif len(frames) == len(chain) and frames[-1].line in chain[-1][1]:
            self.full += samples
        else:
            self.part += samples

    def __str__(self):
        return "%d in the innermost function, %d on the way, %d wrong %s" % (self.full, self.part, self.wrong, self.first)


def check_refused(g, x, text, s, counts):
    """Its unwinder was not loaded: that is said and counted, and the stacks are the machine's."""
    g.check("%s: its unwinder is not loaded, which is said" % x.title,
            "the unwinder '%s' cannot be loaded, its frames are missing: the kernel does not load it" % x.kind in text, text)
    missing = s.get("truncated", {}).get(NO_PROGRAM, 0)
    why = "%s\n%s" % (s, counts)
    g.check("...its samples have that reason", missing >= 20 and missing >= 0.5 * counts.native and not counts.full, why)
    g.check("...and the machine's frames", counts.native >= 20, why)


def check(g, x, name, refused=False):
    """What the recording of that name of its script shows. Where the kernel refused the step: that fusee says so."""
    text, code = g.said(name)
    s = g.stats(name)
    samples, complete = s.get("samples", 0), s.get("complete", 0)
    counts = Counts(g.said(name + " profile")[0], x.kind, x.script)
    print("# %s: %s: %s; %d of %d samples complete, %s" % (g.name, name, counts, complete, samples, s.get("truncated")), flush=True)
    g.check("%s is profiled" % x.title, code == 0, "exit %s\n%s" % (code, text))
    if refused or "the unwinder '%s' cannot be loaded" % x.kind in text:
        check_refused(g, x, text, s, counts)
        return
    if LATE.search(text) and "the unwinder '%s' is loaded" % x.kind in text and counts.full < 20 and not counts.wrong:
        g.skip("...its functions are shown with their lines", "the machine is too busy: " + LATE.search(text).group())
        return
    why = "%s\n%s\n%s" % (text, s, counts)
    g.check("...its functions are shown with their lines", counts.full >= 20 and not counts.wrong and
            counts.part <= 0.15 * counts.full + 5, why)
    g.check("...in the kernel, and few stacks are not complete", samples - complete <= max(3, 0.05 * samples) and
            s.get("bpf", {}).get("delivered", 0) >= 0.8 * samples > 0, why)

# SPDX-License-Identifier: Apache-2.0
"""Unwinders of a test's own: built against the headers, used by a recording."""
import collections
import json
import os
import shlex
import subprocess

import evidence
from outside import TOP, run

PLUGIN = r"""
#include <errno.h>
#include <fusee/helpers.h>
int fusee_step_NAME(struct fusee_unwind *u);
FUSEE_EMBED(step_bpf, "NAME.bpf.o");
struct mine { struct fusee_self self; uint64_t area; int64_t mark; };
static const char *const reasons[] = {"NAME: not known", "NAME: not readable", NULL};
static int frame(struct mine *m, struct fusee_frame_out *out, const char *text)
{
	struct fusee_source_frame f = FUSEE_SIZED(struct fusee_source_frame, .function = fusee_text(text));
	if (!strcmp(text, "blue_100"))
		f.flags = FUSEE_FRAME_HIDDEN | FUSEE_FRAME_BUILTIN;
	return m->self.host->unwinder->frame(out, &f) ? 0 : 1;
}
%s
static const struct fusee_unwinder_ops ops = {
	.size = sizeof(ops), .slab_version = 1, .frame_type = "NAME", .reasons = reasons, .bpf = step_bpf,
	.bpf_end = step_bpf_end, .native_step = fusee_step_NAME, .inspect = inspect, MORE
	.symbolize = symbolize};
static const struct fusee_option options[] = {
	FUSEE_OPTION_INT(struct mine, mark, MARK, 0, INT64_MAX, "A number that each frame has.")};
FUSEE_PLUGIN(NAME, FUSEE_UNWINDER, .version = "0.1", .doc = "A test.", .ctx_size = sizeof(struct mine), .options = FUSEE_TABLE(options),
	     .init = fusee_self_init, .ops = &ops);
"""


class Unwinders:
    """of one test: where its files are, and its taps"""

    def __init__(self, tap, build, hz, seconds):
        self.tap, self.build, self.hz, self.seconds = tap, build, hz, seconds

    def plugin(self, work, folder, name, step, plugin, include=None, **defines):
        out = os.path.join(work, folder)
        os.makedirs(out, exist_ok=True)
        os.chmod(out, 0o755)
        for path, text in ((name + ".bpf.c", step), (name + ".c", PLUGIN.replace("%s", plugin, 1))):
            with open(os.path.join(out, path), "w") as f:
                f.write(text.replace("NAME", name))
        extra = " ".join("-D%s=%s" % (k, shlex.quote(str(v))) for k, v in defines.items())
        r = run("sh", "-ec", "set -- -I%s -O2 -Wall -Werror %s; "
                "clang -g -target bpf -mcpu=v3 \"$@\" -c -o %s.bpf.o %s.bpf.c; "
                "gcc -D_GNU_SOURCE -fPIC -fvisibility=hidden -Wa,-I. -shared \"$@\" -o %s.so %s.c %s.bpf.c" %
                (include or os.path.join(TOP, "include"), extra, name, name, name, name, name), cwd=out)
        return out if self.tap.check("the unwinder '%s' is built" % name, r.returncode == 0, r.stdout) else None

    def program(self, work, name, text):
        source = os.path.join(work, name + ".c")
        with open(source, "w") as f:
            f.write(text)
        path = os.path.join(work, name)
        r = run("gcc", "-O1", "-no-pie", "-fno-optimize-sibling-calls", "-o", path, source)
        self.tap.check("the program '%s' is built" % name, r.returncode == 0, r.stdout)
        return path

    def record(self, work, program, plugins, fusee=None, seconds=None, *options):
        """Until the program has used `seconds` of CPU time. -> stacks and their counts, --stats, output"""
        fusee = fusee or os.path.join(self.build, "fusee")
        profile, stats = os.path.join(work, "out.pb.gz"), os.path.join(work, "stats.json")
        p = subprocess.Popen(program if isinstance(program, list) else [program], stdout=subprocess.PIPE)
        p.stdout.read(1)
        try:
            path = plugins + ":" + os.path.join(self.build, "plugins")
            status, said = evidence.record(fusee, p.pid, seconds or self.seconds, "-F", str(self.hz), "-o", profile, "--stats", stats,
                                           *options, env=dict(os.environ, FUSEE_PLUGIN_PATH=path))
        finally:
            p.kill()
            p.wait()
        got = collections.Counter()
        if not self.tap.check("the recording ends well", status == 0, said):
            return got, {}, said
        for line in run(fusee, "report", "--native", "--folded", profile).stdout.splitlines():
            stack, weight = line.rsplit(" ", 1)
            if not stack.startswith("[lost"):
                got[stack] += round(int(weight) * self.hz / 1e9)
        with open(stats) as f:
            return got, json.load(f), said

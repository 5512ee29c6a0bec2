# SPDX-License-Identifier: Apache-2.0
"""What the kernel's timers did (tests/tools/tool_ticks), and programs that burn, to hold an account
of losses against."""
import json
import os
import subprocess

BURNER = r"""
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long sink;
static double cpu(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}
__attribute__((noipa)) void heavy(void) { for (int i = 0; i < 20000; i++) sink += i; }
__attribute__((noipa)) void light(void) { for (int i = 0; i < 20000; i++) sink ^= i; }
/* Seven parts heavy, three light, in slices that are in step with no rate, on one CPU if one is
 * named; begins with a byte of its input, and never ends. */
int main(int argc, char **argv)
{
	double at, end;
	cpu_set_t set;
	char byte;
	CPU_ZERO(&set);
	if (argc > 1)
		CPU_SET(atoi(argv[1]), &set);
	if (argc > 1 && sched_setaffinity(0, sizeof(set), &set))
		return 1;
	if (read(0, &byte, 1) != 1)
		return 1;
	srand(getpid());
	for (at = cpu();;) {
		double slice = (20 + rand() % 40) / 1000.0;
		for (end = at + 0.7 * slice; (at = cpu()) < end;) heavy();
		for (end = at + 0.3 * slice; (at = cpu()) < end;) light();
	}
}
"""


def steal():
    """Clock ticks that a hypervisor ran others on our CPUs, rounded down (proc_stat(5))."""
    with open("/proc/stat") as f:
        return int(f.readline().split()[8])


def build_burner(path):
    with open(path + ".c", "w") as f:
        f.write(BURNER)
    subprocess.run(["gcc", "-O1", "-o", path, path + ".c"], check=True)


def cpus():
    """Those that we may run on."""
    return sorted(os.sched_getaffinity(0))


class Burner:
    """One that waits for go()."""

    def __init__(self, path, *arguments):
        self.process = subprocess.Popen([path, *map(str, arguments)], stdin=subprocess.PIPE)
        self.pid = self.process.pid

    def go(self):
        self.process.stdin.write(b"x")
        self.process.stdin.flush()

    def end(self):
        self.process.kill()
        self.process.stdin.close()
        self.process.wait()


class Unwatched(Exception):
    """This user or kernel does not let us see timers."""


class Ticks:
    """Counts from now on until count()."""

    def __init__(self, build):
        self.process = subprocess.Popen([os.path.join(build, "tests", "tool_ticks")], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        said = self.process.stdout.readline()
        if said != "ready\n":
            self.process.communicate()
            raise Unwatched(said.replace("# skip: ", "").strip())

    def count(self):
        """-> rows {owner, period_ns, target, cpu, fired, skipped, hidden_while_idle, first_ns, last_ns}"""
        return json.loads(self.process.communicate(timeout=60)[0])


def total(rows, what="fired", **match):
    """The sum over the rows that have these values; idle ones only where target=0 is asked for."""
    if "target" not in match:
        rows = [r for r in rows if r["target"]]
    return sum(r[what] for r in rows if all(r[k] == v for k, v in match.items()))


def periods(rows):
    """How many periods went by on all CPUs between the first and the last tick of events that are one CPU's own."""
    n = 0
    for cpu in {r["cpu"] for r in rows}:
        mine = [r for r in rows if r["cpu"] == cpu]
        span = max(r["last_ns"] for r in mine) - min(r["first_ns"] for r in mine)
        n += round(span / mine[0]["period_ns"]) + 1
    return n

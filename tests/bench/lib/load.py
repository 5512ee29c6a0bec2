# SPDX-License-Identifier: Apache-2.0
"""A busy machine: many processes of some generated programs, of which a few at a time compute, in
turn, so that every CPU has something to do always."""

import os
import random
import subprocess

import programs

HEAD = """/* generated: %(n)d functions, %(chains)d chains of calls */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#define NOINLINE __attribute__((noinline))
static volatile uint64_t sink;
"""

# The callee must not be the last thing done, and what is kept over the call is different each time,
# so that functions differ in their frames and unwind tables.
FUNCTION = """
static NOINLINE uint64_t f%(i)d(uint64_t x, unsigned depth)
{
	volatile uint64_t kept[%(kept)d];
	uint64_t a = x * %(odd)dull, b = x >> %(shift)d;

	for (unsigned i = 0; i < %(kept)d; i++)
		kept[i] = a += b ^ i;
	for (unsigned i = 0; i < (depth ? %(turns)du : 4000u); i++)
		a = a * 6364136223846793005ull + (b ^ (a >> 29));
	if (depth)
		b += depth %% %(mod)du ? f%(callee)d(x + %(i)d, depth - 1) : f%(other)d(x + 1, depth - 1);
	return a + b + kept[x %% %(kept)d];
}
"""

CHAIN = """
static NOINLINE uint64_t chain(unsigned k)
{
	switch (k %% %(chains)du) {
%(cases)s
	}
	return 0;
}
"""

TAKES_TURNS = """
/* argv: own number, of how many, how many of them at a time, milliseconds */
int main(int argc, char **argv)
{
	unsigned long own, all, busy, slot_ns;
	unsigned k = 0;

	if (argc != 5)
		return 64;
	own = strtoul(argv[1], 0, 10);
	all = strtoul(argv[2], 0, 10);
	busy = strtoul(argv[3], 0, 10);
	slot_ns = strtoul(argv[4], 0, 10) * 1000000;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		struct timespec t;
		unsigned long now, slot, away;

		clock_gettime(CLOCK_MONOTONIC, &t);
		now = (unsigned long)t.tv_sec * 1000000000ul + (unsigned long)t.tv_nsec;
		slot = now / slot_ns;
		away = (own + all - slot * busy %% all) %% all / busy;
		if (!away) {
			sink += chain(k++);
			continue;
		}
		slot = (slot + away) * slot_ns;
		t.tv_sec = (long)(slot / 1000000000ul);
		t.tv_nsec = (long)(slot %% 1000000000ul);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0);
	}
}
"""

WORKS = """
#include <stdio.h>

static unsigned long now(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (unsigned long)t.tv_sec * 1000000000ul + (unsigned long)t.tv_nsec;
}

/* argv: how often all chains are one piece of work. For each piece: when it ended, its CPU ns. */
int main(int argc, char **argv)
{
	unsigned long rounds = argc == 2 ? strtoul(argv[1], 0, 10) : 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (rounds) {
		unsigned long before = now(CLOCK_PROCESS_CPUTIME_ID);

		for (unsigned long i = 0; i < rounds; i++)
			for (unsigned k = 0; k < %(chains)d; k++)
				sink += chain(k);
		printf("%%lu %%lu\\n", now(CLOCK_MONOTONIC), now(CLOCK_PROCESS_CPUTIME_ID) - before);
		fflush(stdout);
	}
	return 64;
}
"""


def source(number, main=TAKES_TURNS):
    r = random.Random(number)
    n, chains = 60 + 20 * number, 24
    out = [HEAD % dict(n=n, chains=chains)]
    out += ["static uint64_t f%d(uint64_t x, unsigned depth);\n" % i for i in range(n)]
    for i in range(n):
        out.append(
            FUNCTION
            % dict(
                i=i,
                kept=r.randrange(1, 40),
                odd=r.randrange(1, 1 << 30) * 2 + 1,
                shift=r.randrange(1, 40),
                turns=r.randrange(20, 400),
                mod=r.randrange(2, 9),
                callee=r.randrange(n),
                other=r.randrange(n),
            )
        )
    cases = "".join(
        "\tcase %d:\n\t\treturn f%d(%d, %d);\n" % (k, r.randrange(n), k, r.randrange(6, 26))
        for k in range(chains)
    )
    out.append(CHAIN % dict(chains=chains, cases=cases) + main % dict(chains=chains))
    return "".join(out)


def build(folder, binaries):
    """-> paths of that many different programs; built once"""
    os.makedirs(folder, exist_ok=True)
    names = ["load%02d" % i for i in range(binaries)]
    for i, name in enumerate(names):
        programs.write(os.path.join(folder, name + ".c"), source(i))
    rule = "all: %s\n%%: %%.c\n\tgcc -O2 -o $@ $<\n" % " ".join(names)
    programs.write(os.path.join(folder, "Makefile"), rule)
    subprocess.run(["make", "-s", "-C", folder, "-j%d" % os.cpu_count()], check=True)
    return [os.path.join(folder, name) for name in names]


def build_work(folder):
    """-> the path of a program with frame pointers that does the same over and over"""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "work")
    programs.write(path + ".c", source(7, WORKS))
    subprocess.run(
        ["gcc", "-O2", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"]
        + ["-o", path, path + ".c"],
        check=True,
    )
    return path


class Load:
    """Processes of these programs, until stop()."""

    def __init__(self, paths, processes, busy, slot_ms=100):
        self.processes = [
            subprocess.Popen(
                [paths[i % len(paths)], str(i), str(processes), str(busy), str(slot_ms)]
            )
            for i in range(processes)
        ]

    def stop(self):
        for p in self.processes:
            p.kill()
        for p in self.processes:
            p.wait()

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Burns 70 / 20 / 10 % of its CPU time in three functions and measures for itself what it really
 *was: at its end it prints one JSON object, CPU nanoseconds by function, and the number of pieces.
 *
 *	shares SECONDS SEED [bursts | locked PERIOD_NS]
 *
 * Pieces are of random length and in random order, so that no period of a sampler fits them; with
 *"bursts" it also sleeps for random times in between, as programs do that wait. "locked" is the
 *opposite: 70 / 20 / 10 % of each period of CPU time, in step with a sampler of that very period,
 *which must then be wrong.
 */
#include <stdio.h>
#include <string.h>

#include "burn.h"

static unsigned long state;

static unsigned long next_random(void)
{
	unsigned long z = state += 0x9e3779b97f4a7c15ul;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ul;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebul;
	return z ^ (z >> 31);
}

NOIPA void burn_seventy(unsigned long n);
NOIPA void burn_twenty(unsigned long n);
NOIPA void burn_ten(unsigned long n);

NOIPA void burn_seventy(unsigned long n)
{
	BURN_LOOP(n);
}

NOIPA void burn_twenty(unsigned long n)
{
	BURN_LOOP(n);
}

NOIPA void burn_ten(unsigned long n)
{
	BURN_LOOP(n);
}

static unsigned long thread_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (unsigned long)ts.tv_sec * 1000000000ul + (unsigned long)ts.tv_nsec;
}

static void (*const burn[])(unsigned long) = {burn_seventy, burn_twenty, burn_ten};

static void piece(unsigned long which, unsigned long n, unsigned long ns[3])
{
	unsigned long before = thread_ns();

	burn[which](n);
	ns[which] += thread_ns() - before;
}

/* In step: which function it is hangs on the CPU time modulo the period. */
static void locked(unsigned long period, unsigned long ns[3])
{
	for (int i = 0; i < 2000; i++) {
		unsigned long at = thread_ns() % period * 10 / period;

		piece(at < 7 ? 0 : at < 9 ? 1 : 2, 8000, ns);
	}
}

int main(int argc, char **argv)
{
	unsigned long ns[3] = {0}, pieces = 0, all, period = 0;
	int bursts = argc > 3 && !strcmp(argv[3], "bursts");

	if (argc > 4 && !strcmp(argv[3], "locked"))
		period = strtoul(argv[4], NULL, 10);
	state = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
	burn_ready(argc, argv);
	all = thread_ns();
	while (go_on()) {
		unsigned long r = next_random() % 10;

		if (period) {
			locked(period, ns);
			continue;
		}
		/* which of them is 70 / 20 / 10 % of the pieces, that are equally long on average:
		 * 0.2 to 4 ms or so */
		piece(r < 7 ? 0 : r < 9 ? 1 : 2, 150000 + next_random() % 2500000, ns);
		pieces++;
		if (bursts && next_random() % 4 == 0)
			usleep((unsigned int)(next_random() % 9000));
	}
	printf("{\"burn_seventy\": %lu, \"burn_twenty\": %lu, \"burn_ten\": %lu, \"all\": %lu, "
	       "\"pieces\": %lu}\n",
	       ns[0], ns[1], ns[2], thread_ns() - all, pieces);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Burns 70 / 20 / 10 % of its CPU time in three functions and measures for itself what it really was: at its end it
 * prints one JSON object, CPU nanoseconds by function, and the number of pieces.
 *
 *	shares SECONDS SEED [bursts]
 *
 * Pieces are of random length and in random order, so that no period of a sampler fits them; with "bursts" it also
 * sleeps for random times in between, as programs do that wait.
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

int main(int argc, char **argv)
{
	static void (*const burn[])(unsigned long) = {burn_seventy, burn_twenty, burn_ten};
	unsigned long ns[3] = {0}, pieces = 0, before, after, all;
	int bursts = argc > 3 && !strcmp(argv[3], "bursts");

	state = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
	burn_ready(argc, argv);
	all = before = thread_ns();
	while (go_on()) {
		/* the choice is 70 / 20 / 10 of pieces that are equally long on average: 0.2 to 4 ms or so */
		unsigned long r = next_random() % 10, which = r < 7 ? 0 : r < 9 ? 1 : 2;

		before = thread_ns();
		burn[which](150000 + next_random() % 2500000);
		after = thread_ns();
		ns[which] += after - before;
		pieces++;
		if (bursts && next_random() % 4 == 0)
			usleep((unsigned int)(next_random() % 9000));
	}
	printf("{\"burn_seventy\": %lu, \"burn_twenty\": %lu, \"burn_ten\": %lu, \"all\": %lu, \"pieces\": %lu}\n", ns[0],
	       ns[1], ns[2], thread_ns() - all, pieces);
	return 0;
}

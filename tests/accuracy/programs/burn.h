/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs share. Each burns CPU in chains of calls that its grammar (../grammars.py)
 *describes: nothing is inlined, cloned or turned into a jump, so that a chain of calls in the
 *source is a chain of frames in memory.
 *
 *	prog SECONDS    burns so many seconds of CPU time
 *	BURN_GATE=FIFO  once it is ready to burn it waits for a byte from there, so that profilers
 *attach before the first tick
 */
#ifndef BURN_H
#define BURN_H

#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define NOIPA __attribute__((noipa))
/* After a call: it can't become a jump. */
#define NO_TAIL() __asm__ volatile("" ::: "memory")

static double burn_seconds, burn_start;

static inline __attribute__((always_inline)) double burn_cpu(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* A few ns an iteration; in registers only, no calls. */
#define BURN_LOOP(iterations)                                                        \
	do {                                                                         \
		unsigned long x_ = 88172645463325252ul;                              \
		for (unsigned long i_ = 0; i_ < (unsigned long)(iterations); i_++) { \
			x_ = x_ * 6364136223846793005ul + 1442695040888963407ul;     \
			__asm__ volatile("" : "+r"(x_));                             \
		}                                                                    \
	} while (0)

/* Call in main, when everything stands (threads too). */
static inline __attribute__((always_inline)) void burn_ready(int argc, char **argv)
{
	const char *gate = getenv("BURN_GATE");

	burn_seconds = argc > 1 ? atof(argv[1]) : 10;
	if (gate) {
		int fd = open(gate, O_RDONLY);
		char byte;

		if (fd < 0 || read(fd, &byte, 1) != 1)
			exit(1);
		close(fd);
	}
	burn_start = burn_cpu();
}

/* The one place that asks for the time: call it from main's loop, some hundred times a second at
 * most. */
__attribute__((unused)) static NOIPA int go_on(void)
{
	return burn_cpu() - burn_start < burn_seconds;
}
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What a process has used of CPUs, so that a test of sampling waits for evidence and no time. */
#ifndef LIB_CPU_TIME_H
#define LIB_CPU_TIME_H

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* Nanoseconds of all its threads; 0: it is not there. */
static inline uint64_t cpu_ns(pid_t pid)
{
	struct timespec t;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t))
		return 0;
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
#endif

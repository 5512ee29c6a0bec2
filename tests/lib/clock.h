/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clocks that a test puts forward, for timeouts that no option shortens: the test waits until the
 * plugin waits, and then lets the time pass at once. The plugin runs in one thread, the test's, and
 * has at most one timerfd, of an absolute time. Include it once in a test program.
 */
#ifndef CLOCK_H
#define CLOCK_H

#include <sys/timerfd.h>

#include "test.h"

static uint64_t clock_ahead_ns;
static int clock_timer = -1;
static struct itimerspec clock_timer_at;

static struct timespec clock_shifted(struct timespec t, int64_t by_ns)
{
	int64_t ns = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec + by_ns;

	ns = ns > 0 ? ns : 1; /* 0 would stop a timer */
	return (struct timespec){ns / 1000000000, ns % 1000000000};
}

int clock_gettime(clockid_t id, struct timespec *t)
{
	int r = (int)syscall(SYS_clock_gettime, id, t);

	if (!r && (id == CLOCK_MONOTONIC || id == CLOCK_REALTIME))
		*t = clock_shifted(*t, (int64_t)clock_ahead_ns);
	return r;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *old)
{
	struct itimerspec real = *at;

	clock_timer = fd;
	clock_timer_at = *at;
	if (at->it_value.tv_sec || at->it_value.tv_nsec)
		real.it_value = clock_shifted(at->it_value, -(int64_t)clock_ahead_ns);
	return (int)syscall(SYS_timerfd_settime, fd, flags, &real, old);
}

/* So many seconds pass now. */
static void clock_skip(double seconds)
{
	clock_ahead_ns += (uint64_t)(seconds * 1e9);
	if (clock_timer >= 0)
		CHECK(!timerfd_settime(clock_timer, TFD_TIMER_ABSTIME, &clock_timer_at, NULL));
}
#endif

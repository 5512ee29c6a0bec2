/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t clock_now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

struct timespec clock_spec(uint64_t ns)
{
	return (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
}

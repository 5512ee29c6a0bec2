/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

/* CLOCK_MONOTONIC of this time namespace minus that of the kernel. */
static int64_t offset;

uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct timespec clock_spec(uint64_t ns)
{
	return (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
}

uint64_t clock_now(void)
{
	return clock_ns(CLOCK_MONOTONIC) - (uint64_t)offset;
}

uint64_t clock_own(uint64_t now)
{
	uint64_t own;

	if (offset < 0)
		return now > -(uint64_t)offset ? now + (uint64_t)offset : 1;
	return __builtin_add_overflow(now, (uint64_t)offset, &own) ? UINT64_MAX : own;
}

struct timespec clock_until(uint64_t now)
{
	return clock_spec(clock_own(now));
}

/* The file has the offsets of children. They are its own too, unless a process that has called
 * unshare() went on as fusee, which kernels before 6.1 allow. */
static int children_are_alike(void)
{
	struct stat own, children;

	return !stat("/proc/self/ns/time", &own) &&
	       !stat("/proc/self/ns/time_for_children", &children) && own.st_ino == children.st_ino;
}

void clock_find_offset(void)
{
	FILE *f = children_are_alike() ? fopen("/proc/self/timens_offsets", "re") : NULL;
	char name[32];
	int64_t s, ns;

	while (f && fscanf(f, "%31s %" SCNd64 " %" SCNd64, name, &s, &ns) == 3)
		if (name[0] == 'm') /* monotonic */
			offset = s * 1000000000 + ns;
	if (f)
		fclose(f);
}

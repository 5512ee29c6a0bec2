/* SPDX-License-Identifier: Apache-2.0 */
/* Formats: cgroups(7), cgroup-v2 "memory.max", cgroup-v1 "memory.limit_in_bytes". */
#include "agent/internal/memory.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process/cgroup.h"

#define MAPPED_FROM (128 << 10) /* bytes: larger blocks are mappings of their own */
#define FREE_AT_END (128 << 10) /* bytes at the end of a thread's heap */
#define LEAST_WORKER (96ull << 20)
#define MOST_WORKER (1ull << 30)
#define LEAST_CODE (32ull << 20)
#define MOST_CODE (256ull << 20)

/* Otherwise glibc raises the thresholds up to 32 and 64 MiB when a large block is freed. Then a
 * window's arrays would lie between small blocks that remain, and up to 64 MiB would stay free at
 * the end of each thread's heap, which malloc_trim() does not return. */
void memory_prepare(void)
{
	mallopt(M_MMAP_THRESHOLD, MAPPED_FROM);
	mallopt(M_TRIM_THRESHOLD, FREE_AT_END);
}

void memory_trim(void)
{
	malloc_trim(0);
}

/* The number in a file; UINT64_MAX: there is none, as "max". */
static uint64_t number_in(const char *path)
{
	FILE *f = fopen(path, "re");
	char text[32] = "";
	uint64_t n;
	char *end;

	if (!f)
		return UINT64_MAX;
	if (!fgets(text, sizeof(text), f))
		*text = '\0';
	fclose(f);
	n = strtoull(text, &end, 10);
	return end == text || !n ? UINT64_MAX : n;
}

uint64_t memory_limit_of(const char *sys, const char *cgroup)
{
	static const char *const files[][2] = {{"", "memory.max"},
					       {"/memory", "memory.limit_in_bytes"}};
	uint64_t least = UINT64_MAX;
	char path[CGROUP_MAX + 64], group[CGROUP_MAX];

	snprintf(group, sizeof(group), "%s", cgroup);
	for (;;) { /* the group, and those above it */
		char *slash = strrchr(group, '/');

		for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
			uint64_t n;

			snprintf(path, sizeof(path), "%.32s%s%s/%s", sys, files[i][0], group,
				 files[i][1]);
			n = number_in(path);
			least = n < least ? n : least;
		}
		if (!slash)
			break;
		*slash = '\0';
	}
	return least;
}

uint64_t memory_available(void)
{
	uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE), limit;
	char cgroup[CGROUP_MAX];

	if (cgroup_of("", getpid(), cgroup, NULL))
		return all;
	limit = memory_limit_of("/sys/fs/cgroup", cgroup);
	return limit < all ? limit : all;
}

static uint64_t between(uint64_t least, uint64_t n, uint64_t most)
{
	return n < least ? least : n > most ? most : n;
}

uint64_t memory_of_worker(uint64_t available)
{
	return between(LEAST_WORKER, available / 8, MOST_WORKER);
}

uint64_t memory_of_code(uint64_t available)
{
	return between(LEAST_CODE, available / 32, MOST_CODE);
}

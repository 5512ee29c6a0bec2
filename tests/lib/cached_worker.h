/* SPDX-License-Identifier: Apache-2.0 */
/* A worker with a cache in the test's folder. Include it once in a test program. */
#ifndef CACHED_WORKER_H
#define CACHED_WORKER_H

#include "worker_help.h"

static struct worker *start(struct worker_options o)
{
	struct worker *w;

	CHECK_INT(worker_new(&w, &o), 0);
	return w;
}

static const char *cache_dir(void)
{
	static char dir[80];

	snprintf(dir, sizeof(dir), "%s/a/cache", test_dir());
	return dir;
}

__attribute__((unused)) static int open_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	return fd;
}

/* Files in the cache. */
static int cached_files(void)
{
	char command[160];
	int n = -1;
	FILE *f;

	snprintf(command, sizeof(command), "find %s -type f | wc -l", cache_dir());
	f = popen(command, "r");
	CHECK(f && fscanf(f, "%d", &n) == 1);
	pclose(f);
	return n;
}
#endif

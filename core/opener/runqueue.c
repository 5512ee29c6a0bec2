// SPDX-License-Identifier: Apache-2.0
#include "opener/internal/runqueue.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int open_of(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

int runqueue_open(pid_t pid)
{
	return open_of(pid, "schedstat");
}

uint64_t runqueue_wait_ns(int fd)
{
	char text[128], *end;
	ssize_t n = fd >= 0 ? pread(fd, text, sizeof(text) - 1, 0) : 0;

	if (n <= 0)
		return 0;
	text[n] = '\0';
	strtoull(text, &end, 10); /* the time on a CPU */
	return strtoull(end, NULL, 10);
}

bool runqueue_has(pid_t pid)
{
	char text[512];
	int fd = open_of(pid, "stat");
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
	const char *name_end;

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	name_end = strrchr(text, ')'); /* the state follows: proc_pid_stat(5) */
	return name_end && strncmp(name_end, ") R", 3) == 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "events/internal/cpus.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void cpus_parse(struct cpus *c, const char *list)
{
	*c = (struct cpus){0};
	while (*list >= '0' && *list <= '9') {
		char *p;
		long lo = strtol(list, &p, 10), hi = lo;

		if (*p == '-')
			hi = strtol(p + 1, &p, 10);
		for (; lo <= hi && lo < CPUS_MAX; lo++)
			c->bits[lo / 64] |= 1ull << lo % 64;
		list = p + (*p == ',');
	}
}

int cpus_open(void)
{
	int fd = open("/sys/devices/system/cpu/online", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

void cpus_read(struct cpus *c, int fd)
{
	char list[4096];
	ssize_t n = fd < 0 ? -1 : pread(fd, list, sizeof(list) - 1, 0);

	if (n > 0)
		list[n] = '\0';
	else
		snprintf(list, sizeof(list), "0-%ld", sysconf(_SC_NPROCESSORS_CONF) - 1);
	cpus_parse(c, list);
}

bool cpus_has(const struct cpus *c, int number)
{
	return c->bits[number / 64] >> number % 64 & 1;
}

void cpus_remove(struct cpus *c, int number)
{
	c->bits[number / 64] &= ~(1ull << number % 64);
}

int cpus_end(const struct cpus *c)
{
	int i = CPUS_MAX / 64;

	while (i && !c->bits[i - 1])
		i--;
	return i ? i * 64 - __builtin_clzll(c->bits[i - 1]) : 0;
}

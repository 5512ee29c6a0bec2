/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of a test's own, and what a shell says of it. */
#ifndef SCRATCH_H
#define SCRATCH_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char dir[64];

static inline void scratch(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(dir, sizeof(dir), "%.40s/fusee-XXXXXX", tmp ? tmp : "/tmp");
	CHECK(mkdtemp(dir));
}

/* The first line that a command prints in the folder. */
static inline const char *shell(const char *command)
{
	static char line[512];
	char all[1024];
	FILE *f;

	snprintf(all, sizeof(all), "cd '%s' && %s", dir, command);
	f = popen(all, "r");
	CHECK(f);
	if (!fgets(line, sizeof(line), f))
		*line = '\0';
	line[strcspn(line, "\n")] = '\0';
	pclose(f);
	return line;
}

static inline void clean(void)
{
	CHECK_STR(shell("rm -rf \"$PWD\" && echo removed"), "removed");
}
#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static _Atomic int level = -1; /* -1: not yet read from the environment */
static const char *prefix = "fusee: ";
static void (*before)(void);

int log_level(void)
{
	if (level < 0)
		level = getenv("FUSEE_DEBUG") ? LOG_DEBUG : LOG_INFO;
	return level;
}

void log_set_level(int l)
{
	level = l;
}

void log_set_prefix(const char *p)
{
	prefix = p;
}

void log_set_before(void (*f)(void))
{
	before = f;
}

void log_at(int l, const char *format, ...)
{
	char line[4096];
	va_list ap;

	if (l > log_level())
		return;
	va_start(ap, format);
	vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	if (before)
		before();
	fprintf(stderr, "%s%s\n", prefix, line);
}

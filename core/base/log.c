/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/credentials.h"

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

/* The length of a character at p, which is not the end, that would change the state of a terminal
 * or the order of what it shows; 0: it is none of these. */
static size_t hidden(const unsigned char *p)
{
	if (p[0] == '\n' || p[0] == '\t')
		return 0;
	if (p[0] < 0x20 || p[0] == 0x7f)
		return 1;
	if (p[0] == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f) /* C1 */
		return 2;
	if (p[0] != 0xe2)
		return 0;
	/* U+200E, U+200F, U+202A .. U+202E; U+2066 .. U+2069 */
	if (p[1] == 0x80)
		return p[2] == 0x8e || p[2] == 0x8f || (p[2] >= 0xaa && p[2] <= 0xae) ? 3 : 0;
	return p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9 ? 3 : 0;
}

static void clean(char *line)
{
	for (unsigned char *p = (unsigned char *)line; *p; p++)
		memset(p, '?', hidden(p));
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
	clean(line);
	credentials_hide(line);
	if (before)
		before();
	fprintf(stderr, "%s%s\n", prefix, line);
}

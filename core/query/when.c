/* SPDX-License-Identifier: Apache-2.0 */
#include "query/when.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text.h"

#define SECOND 1000000000ull
#define MAX_SECONDS 9000000000ull /* in ns they fit into an int64_t */
#define DIGITS "0123456789"

static int set_seconds(time_t t, uint64_t fraction, uint64_t *ns)
{
	if (t < 0 || (uint64_t)t > MAX_SECONDS)
		return -EINVAL;
	*ns = (uint64_t)t * SECOND + fraction;
	return 0;
}

/* ".25" at *p in ns; *p is behind it then. */
static uint64_t fraction_of(const char **p)
{
	uint64_t ns = 0, unit = SECOND / 10;

	if (**p != '.')
		return 0;
	for (++*p; **p >= '0' && **p <= '9'; ++*p, unit /= 10)
		ns += (uint64_t)(**p - '0') * unit;
	return ns;
}

/* The time `tm` of the local zone. */
static int local(struct tm *tm, uint64_t fraction, uint64_t *ns)
{
	tm->tm_isdst = -1;
	return set_seconds(mktime(tm), fraction, ns);
}

/* The local midnight that began the day `days` before today. */
static int midnight(uint64_t now_ns, int days, uint64_t *ns)
{
	time_t t = (time_t)(now_ns / SECOND);
	struct tm tm;

	if (!localtime_r(&t, &tm))
		return -EINVAL;
	tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
	tm.tm_mday -= days;
	return local(&tm, 0, ns);
}

/* "Z", "+01:00", "-0530" at p, all of it, as seconds east of Greenwich. */
static int zone(const char *p, long *seconds)
{
	int h, m, n = 0;

	*seconds = 0;
	if (!strcmp(p, "Z") || !strcmp(p, "z"))
		return 0;
	if ((*p != '+' && *p != '-') || strspn(p + 1, DIGITS ":") != strlen(p + 1))
		return -EINVAL;
	if (sscanf(p + 1, "%2d:%2d%n", &h, &m, &n) != 2 || p[1 + n]) {
		n = 0;
		if (sscanf(p + 1, "%2d%2d%n", &h, &m, &n) != 2 || p[1 + n])
			return -EINVAL;
	}
	if (h > 14 || m > 59)
		return -EINVAL;
	*seconds = (h * 60l + m) * 60 * (*p == '-' ? -1 : 1);
	return 0;
}

/* mktime() would turn 31 February into a day of March. */
static bool is_date(const struct tm *tm)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	int year = tm->tm_year + 1900;
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return tm->tm_mday <= days[tm->tm_mon] + (leap && tm->tm_mon == 1);
}

static int date(const char *text, uint64_t *ns)
{
	const char *p, *rest;
	struct tm tm = {0};
	uint64_t fraction;
	long east;
	int r;

	p = strspn(text, DIGITS) == 4 ? strptime(text, "%Y-%m-%d", &tm) : NULL;
	if (!p || !is_date(&tm))
		return -EINVAL;
	if (!*p)
		return local(&tm, 0, ns);
	if (*p != 'T' && *p != ' ' && *p != 't')
		return -EINVAL;
	rest = strptime(p + 1, "%H:%M", &tm);
	if (rest && *rest == ':')
		rest = strptime(rest, ":%S", &tm);
	if (!rest)
		return -EINVAL;
	fraction = fraction_of(&rest);
	if (!*rest)
		return local(&tm, fraction, ns);
	r = zone(rest, &east);
	return r ? r : set_seconds(timegm(&tm) - east, fraction, ns);
}

static int ago(const char *text, uint64_t now_ns, uint64_t *ns)
{
	uint64_t before;

	if (!text[strspn(text, DIGITS ".")] || text_duration(text, &before) || before > now_ns)
		return -EINVAL;
	*ns = now_ns - before;
	return 0;
}

int when_parse(const char *text, uint64_t now_ns, uint64_t *ns)
{
	size_t digits = strspn(text, DIGITS);
	const char *rest = text + digits;

	if (digits >= 9 && digits <= 10 && (!*rest || *rest == '.')) {
		time_t t = (time_t)strtoll(text, NULL, 10);
		uint64_t fraction = fraction_of(&rest);

		return *rest ? -EINVAL : set_seconds(t, fraction, ns);
	}
	if (!strcmp(text, "now")) {
		*ns = now_ns;
		return 0;
	}
	if (!strcmp(text, "today"))
		return midnight(now_ns, 0, ns);
	if (!strcmp(text, "yesterday"))
		return midnight(now_ns, 1, ns);
	if (!strncmp(text, "now-", 4))
		return ago(text + 4, now_ns, ns);
	if (*text == '-')
		return ago(text + 1, now_ns, ns);
	return date(text, ns) ? ago(text, now_ns, ns) : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as pprof prints them: the same digits and the same units, so that two tools can be
 * compared by eye. */
#include "report/model.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "base/utf8.h"

#define MINIMUM "minimum"

struct unit {
	const char *name; /* as printed */
	const char *aliases[4];
	double factor;
};

static const struct unit bytes[] = {
	{"B", {"b", "byte"}, 1},
	{"kB", {"kb", "kbyte", "kilobyte"}, 1ull << 10},
	{"MB", {"mb", "mbyte", "megabyte"}, 1ull << 20},
	{"GB", {"gb", "gbyte", "gigabyte"}, 1ull << 30},
	{"TB", {"tb", "tbyte", "terabyte"}, 1ull << 40},
	{"PB", {"pb", "pbyte", "petabyte"}, 1ull << 50},
	{0},
};

static const struct unit times[] = {
	{"ns", {"ns", "nanosecond"}, 1},    {"us", {"\xce\xbcs", "us", "microsecond"}, 1e3},
	{"ms", {"ms", "millisecond"}, 1e6}, {"s", {"s", "sec", "second"}, 1e9},
	{"hrs", {"hour", "hr"}, 3600e9},    {0},
};

static const struct {
	const struct unit *units;
	const char *standard; /* if no other fits */
	double factor;
} families[] = {{bytes, "B", 1}, {times, "s", 1e9}};

/* Ignores case and plural. */
static const struct unit *find_unit(const struct unit *units, const char *name)
{
	char plain[32];
	size_t n = strlen(name);

	if (n >= sizeof(plain))
		return NULL;
	for (size_t i = 0; i <= n; i++)
		plain[i] = (char)tolower((unsigned char)name[i]);
	if (n > 2 && plain[n - 1] == 's')
		plain[n - 1] = '\0';
	for (const struct unit *u = units; u->name; u++)
		for (size_t i = 0; i < 4 && u->aliases[i]; i++)
			if (!strcmp(u->aliases[i], plain))
				return u;
	return NULL;
}

/* The largest unit in which the value is at least 1. */
static double scale_auto(const struct unit *units, double v, const char **name)
{
	const struct unit *best = NULL;

	for (const struct unit *u = units; u->name; u++)
		if (v / u->factor >= 1)
			best = u;
	if (!best)
		return NAN;
	*name = best->name;
	return v / best->factor;
}

/* Converts a value from one unit to another; *name: what is printed behind it. */
static double scale(double value, const char *from, const char *to, const char **name)
{
	bool any = !strcmp(to, MINIMUM) || !strcmp(to, "auto");

	for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++) {
		const struct unit *f = find_unit(families[i].units, from),
				  *t = find_unit(families[i].units, to);
		double v, scaled;

		if (!f)
			continue;
		v = value * f->factor;
		if (any) {
			scaled = scale_auto(families[i].units, v, name);
			if (!isnan(scaled))
				return scaled;
		} else if (t) {
			*name = t->name;
			return v / t->factor;
		}
		*name = families[i].standard;
		return v / families[i].factor;
	}
	*name = any || !strcmp(to, "count") || !strcmp(to, "sample") || !strcmp(to, "unit") ? ""
											    : to;
	return value;
}

static void terminated(char out[RENDER_NUMBER], struct fusee_str s)
{
	snprintf(out, RENDER_NUMBER, "%.*s",
		 (int)(s.len < RENDER_NUMBER ? s.len : RENDER_NUMBER - 1), s.len ? s.p : "");
}

void render_value(char out[RENDER_NUMBER], int64_t value, struct fusee_str unit, const char *to)
{
	char from[RENDER_NUMBER], number[400];
	const char *name = "";
	double v;
	size_t n;

	terminated(from, unit);
	v = scale(value < 0 ? -(double)value : (double)value, from, to, &name);
	n = (size_t)snprintf(number, sizeof(number), "%.2f", value < 0 ? -v : v);
	if (n > 3 && !strcmp(number + n - 3, ".00"))
		number[n - 3] = '\0';
	if (!strcmp(number, "0") || !strcmp(number, "-0"))
		snprintf(out, RENDER_NUMBER, "0");
	else
		snprintf(out, RENDER_NUMBER, "%.30s%.16s", number, name);
}

void render_percent(char out[RENDER_NUMBER], int64_t value, int64_t total)
{
	double ratio = total ? fabs((double)value / (double)total) * 100 : 0;

	if (ratio >= 99.95 && ratio <= 100.05)
		snprintf(out, RENDER_NUMBER, "  100%%");
	else if (ratio >= 1)
		snprintf(out, RENDER_NUMBER, "%5.2f%%", ratio);
	else
		snprintf(out, RENDER_NUMBER, "%5.2g%%", ratio);
}

void render_unit(char out[RENDER_NUMBER], int64_t smallest, int64_t largest, struct fusee_str unit)
{
	const char *low = "", *high = "", *chosen;
	char from[RENDER_NUMBER];

	terminated(from, unit);
	if (!smallest)
		smallest = largest;
	scale((double)smallest, from, MINIMUM, &low);
	scale((double)largest, from, MINIMUM, &high);
	chosen = low;
	/* A wide range: two digits behind the point show small values too. */
	if (strcmp(low, high) && (double)smallest * 100 < (double)largest)
		scale((double)smallest * 100, from, MINIMUM, &chosen);
	snprintf(out, RENDER_NUMBER, "%s", *chosen ? chosen : from);
}

uint32_t render_columns(struct fusee_str s)
{
	uint32_t n = 0;

	for (uint64_t i = 0; i < s.len; i++)
		n += ((unsigned char)s.p[i] & 0xc0) != 0x80;
	return n;
}

/* The offset of column n. */
static uint64_t column(struct fusee_str s, uint32_t n)
{
	uint64_t i = 0;

	for (; i < s.len && (n || ((unsigned char)s.p[i] & 0xc0) == 0x80); i++)
		n -= ((unsigned char)s.p[i] & 0xc0) != 0x80;
	return i;
}

struct fusee_str render_place(const struct render_function *f, char text[RENDER_PLACE])
{
	struct fusee_str base = str_base_name(f->file);

	if (f->library.len)
		base.len = 0;
	if (!base.len || !f->start_line)
		return base;
	snprintf(text, RENDER_PLACE, "%.*s:%" PRIu32,
		 (int)(base.len < RENDER_PLACE / 2 ? base.len : RENDER_PLACE / 2), base.p,
		 f->start_line);
	return fusee_text(text);
}

struct fusee_str render_name_beside_place(const struct render_model *m,
					  const struct render_function *f)
{
	return m->modules[f->module].shares_name ? f->shown : f->name;
}

void render_plain(struct buf *out, struct fusee_str s)
{
	for (uint64_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.p[i],
			      next = i + 1 < s.len ? (unsigned char)s.p[i + 1] : 0;

		if (c < ' ' || c == 0x7f) {
			buf_str(out, "?");
		} else if (c == 0xc2 && next >= 0x80 && next <= 0x9f) {
			buf_str(out, "?");
			i++;
		} else {
			buf_add(out, &c, 1);
		}
	}
}

void render_name(struct buf *out, struct fusee_str name, uint32_t width)
{
	uint32_t all = render_columns(name), head, tail;
	uint64_t at;

	if (!width || all <= width || width < 8) {
		render_plain(out, name);
		return;
	}
	head = (width - 3) / 2;
	tail = width - 3 - head;
	render_plain(out, (struct fusee_str){name.p, column(name, head)});
	buf_str(out, "...");
	at = column(name, all - tail);
	render_plain(out, (struct fusee_str){name.p + at, name.len - at});
}

int render_compile(regex_t *re, const char *prefix, const char *regex, struct buf *error)
{
	char why[128];
	int r = regcomp(re, regex, REG_EXTENDED);

	if (!r)
		return 0;
	regerror(r, re, why, sizeof(why));
	buf_printf(error, "%sbad regular expression '%s': %s", prefix, regex, why);
	return -EINVAL;
}

bool render_matches(const regex_t *re, struct fusee_str s)
{
	char text[RENDER_MATCH_MAX + 1];
	size_t n = s.len < RENDER_MATCH_MAX ? s.len : RENDER_MATCH_MAX;

	if (n)
		memcpy(text, s.p, n);
	text[n] = '\0';
	return !regexec(re, text, 0, NULL, 0);
}

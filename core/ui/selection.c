/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/internal/selection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/http_query.h"

#define MAX_PARAMS 40
#define MS 1000000ull
#define MAX_DIGITS 13u /* of a time in milliseconds */

static int fail(struct buf *error, const char *text)
{
	buf_str(error, text);
	return -EINVAL;
}

bool ui_side_is_empty(const struct ui_side *s)
{
	return !s->n && !s->all;
}

/* Adds a number of a file, in order, unless it is there already. false: there are too many. */
static bool add_file(struct ui_side *s, uint32_t number)
{
	uint32_t at = s->n;

	while (at && s->files[at - 1] > number)
		at--;
	if (at && s->files[at - 1] == number)
		return true;
	if (s->n == UI_MAX_ADDED)
		return false;
	memmove(&s->files[at + 1], &s->files[at], (s->n - at) * sizeof(*s->files));
	s->files[at] = number;
	s->n++;
	return true;
}

static int set_side(struct ui_side *s, const char *value, struct buf *error)
{
	s->n = 0;
	s->all = !strcmp(value, "all");
	while (!s->all) {
		char *end;
		unsigned long n = strtoul(value, &end, 10);

		if (*value < '0' || *value > '9' || (*end && *end != ',') || n >= UINT32_MAX)
			return fail(error, "a file is a number");
		if (!add_file(s, (uint32_t)n))
			return fail(error, "too many files are selected: select all of a range of "
					   "time");
		if (!*end)
			break;
		value = end + 1;
	}
	return 0;
}

static int set_time(uint64_t *ns, const char *value, struct buf *error)
{
	size_t n = strspn(value, "0123456789");

	if (!n || value[n] || n > MAX_DIGITS)
		return fail(error, "a time is a number of milliseconds");
	*ns = strtoull(value, NULL, 10) * MS;
	return 0;
}

static int add_where(struct render_options *o, const char *value, struct buf *error)
{
	uint32_t n = 0;

	while (o->where[n])
		n++;
	if (n == RENDER_MAX_WHERE)
		return fail(error, "too many labels are selected");
	o->where[n] = value;
	return 0;
}

static int set_skip(uint32_t *skip, const char *value, struct buf *error)
{
	size_t n = strspn(value, "0123456789");

	if (!n || value[n] || n > 9)
		return fail(error, "the number of threads that are skipped is not valid");
	*skip = (uint32_t)strtoul(value, NULL, 10);
	return 0;
}

static int set(struct ui_selection *s, const struct http_param *p, struct buf *error)
{
	const struct {
		const char *name;
		uint64_t *ns;
	} times[] = {
		{"from", &s->now.range.from_ns},       {"to", &s->now.range.to_ns},
		{"base_from", &s->base.range.from_ns}, {"base_to", &s->base.range.to_ns},
		{"span_from", &s->span.from_ns},       {"span_to", &s->span.to_ns},
	};

	for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++)
		if (!strcmp(p->name, times[i].name))
			return set_time(times[i].ns, p->value, error);
	if (!strcmp(p->name, "file"))
		return set_side(&s->now, p->value, error);
	if (!strcmp(p->name, "base"))
		return set_side(&s->base, p->value, error);
	if (!strcmp(p->name, "where"))
		return add_where(&s->o, p->value, error);
	if (!strcmp(p->name, "skip"))
		return set_skip(&s->threads.skip, p->value, error);
	if (!strcmp(p->name, "type"))
		s->o.type = *p->value ? p->value : NULL;
	else if (!strcmp(p->name, "function"))
		s->o.function = *p->value ? p->value : NULL;
	else if (!strcmp(p->name, "by"))
		s->by = *p->value ? p->value : NULL;
	else if (!strcmp(p->name, "thread"))
		s->threads.text = *p->value ? p->value : NULL;
	else if (!strcmp(p->name, "native"))
		s->o.native = !strcmp(p->value, "1");
	else
		return fail(error, "the page has sent a parameter that is not known");
	return 0;
}

int ui_selection_parse(struct ui_selection *s, char *query, struct buf *error)
{
	const struct ui_range always = {0, UINT64_MAX};
	struct http_param params[MAX_PARAMS];
	uint32_t n;
	int r = http_query_parse(query, params, MAX_PARAMS, &n);

	*s = (struct ui_selection){.now.range = always, .base.range = always, .span = always};
	if (r)
		return fail(error, "the page has sent a query that is not valid");
	for (uint32_t i = 0; !r && i < n; i++)
		r = set(s, &params[i], error);
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/internal/selection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/http_query.h"

#define MAX_PARAMS 32

static int fail(struct buf *error, const char *text)
{
	buf_str(error, text);
	return -EINVAL;
}

static int set_number(uint32_t *to, const char *value, struct buf *error)
{
	char *end;
	unsigned long n = strtoul(value, &end, 10);

	if (*value < '0' || *value > '9' || *end || n >= UI_NO_FILE)
		return fail(error, "a file is a number");
	*to = (uint32_t)n;
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

static int set(struct ui_selection *s, const struct http_param *p, struct buf *error)
{
	if (!strcmp(p->name, "file"))
		return set_number(&s->file, p->value, error);
	if (!strcmp(p->name, "base"))
		return set_number(&s->base, p->value, error);
	if (!strcmp(p->name, "where"))
		return add_where(&s->o, p->value, error);
	if (!strcmp(p->name, "type"))
		s->o.type = *p->value ? p->value : NULL;
	else if (!strcmp(p->name, "function"))
		s->o.function = *p->value ? p->value : NULL;
	else if (!strcmp(p->name, "native"))
		s->o.native = !strcmp(p->value, "1");
	else
		return fail(error, "the page has sent a parameter that is not known");
	return 0;
}

int ui_selection_parse(struct ui_selection *s, char *query, struct buf *error)
{
	struct http_param params[MAX_PARAMS];
	uint32_t n;
	int r = http_query_parse(query, params, MAX_PARAMS, &n);

	*s = (struct ui_selection){.file = UI_NO_FILE, .base = UI_NO_FILE};
	if (r)
		return fail(error, "the page has sent a query that is not valid");
	for (uint32_t i = 0; !r && i < n; i++)
		r = set(s, &params[i], error);
	return r;
}

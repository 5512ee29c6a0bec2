/* SPDX-License-Identifier: Apache-2.0 */
/* An option is its name, the digit of its kind, and one text or the number of pairs and their
 * texts. Each text follows its length. */
#include "plugin/option_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

#define MAX_LIST 4096u

void instance_option_list_free(struct instance_option *o, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		free(o[i].name);
		option_value_fini(&o[i].value);
	}
	free(o);
}

static void add_text(struct buf *b, const char *text)
{
	buf_printf(b, "%zu:", strlen(text));
	buf_str(b, text);
}

char *option_text(const struct instance_option *list, uint32_t n)
{
	struct buf b = {0};

	for (uint32_t i = 0; i < n; i++) {
		const struct option_value *v = &list[i].value;

		add_text(&b, list[i].name);
		buf_printf(&b, "%d", (int)v->kind);
		if (v->kind == OPTION_TEXT) {
			add_text(&b, v->text);
			continue;
		}
		buf_printf(&b, "%u:", v->n);
		for (uint32_t k = 0; k < v->n; k++) {
			add_text(&b, v->pairs[k].key ? v->pairs[k].key : "");
			add_text(&b, v->pairs[k].value);
		}
	}
	buf_add(&b, "", 1);
	if (b.error)
		buf_fini(&b);
	return b.p;
}

/* Reads a number and the colon after it. */
static int read_number(const char **at, uint32_t *n)
{
	char *end;
	unsigned long v = strtoul(*at, &end, 10);

	if (**at < '0' || **at > '9' || *end != ':' || v > UINT32_MAX)
		return -EINVAL;
	*at = end + 1;
	*n = (uint32_t)v;
	return 0;
}

static int read_text(const char **at, char **text)
{
	uint32_t len;

	if (read_number(at, &len) || strnlen(*at, len) < len)
		return -EINVAL;
	*text = strndup(*at, len);
	*at += len;
	return *text ? 0 : -ENOMEM;
}

static int read_pairs(const char **at, struct option_value *v)
{
	uint32_t n;
	int r = 0;

	if (read_number(at, &n) || n > MAX_LIST)
		return -EINVAL;
	v->pairs = calloc(n ? n : 1, sizeof(*v->pairs));
	if (!v->pairs)
		return -ENOMEM;
	for (; !r && v->n < n; v->n++) {
		struct option_pair *p = &v->pairs[v->n];

		r = read_text(at, &p->key);
		if (!r)
			r = read_text(at, &p->value);
		if (v->kind == OPTION_LIST) {
			free(p->key);
			p->key = NULL;
		}
	}
	return r;
}

static int read_option(const char **at, struct instance_option *o)
{
	int r = read_text(at, &o->name);

	if (r)
		return r;
	o->value.kind = **at - '0';
	if (o->value.kind != OPTION_TEXT && o->value.kind != OPTION_LIST &&
	    o->value.kind != OPTION_MAP)
		return -EINVAL;
	++*at;
	return o->value.kind == OPTION_TEXT ? read_text(at, &o->value.text)
					    : read_pairs(at, &o->value);
}

int option_text_read(const char *text, struct instance_option **list, uint32_t *n)
{
	int r = 0;

	*list = NULL;
	*n = 0;
	while (!r && *text) {
		struct instance_option *all = *n < MAX_LIST
						      ? realloc(*list, (*n + 1) * sizeof(*all))
						      : NULL;

		if (!all) {
			r = *n < MAX_LIST ? -ENOMEM : -EINVAL;
			break;
		}
		*list = all;
		all[*n] = (struct instance_option){0};
		r = read_option(&text, &all[(*n)++]);
	}
	if (!r)
		return 0;
	instance_option_list_free(*list, *n);
	*list = NULL;
	*n = 0;
	return r;
}

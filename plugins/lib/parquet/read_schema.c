/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the columns of a file from its schema, whose elements are those that footer.c writes, in
 * its order.
 */
#include <stdlib.h>

#include "read_internal.h"

enum { REQUIRED = 0, REPEATED = 2 };
enum { UTF8 = 0, MAP = 1, LIST = 3, TIMESTAMP = 10 };
#define NONE (-1)
#define MAX_NAME 1024

struct element {
	int64_t type, repetition, children, converted;
	struct fusee_str name;
};

static struct element get_element(struct pq_in *in)
{
	struct element e = {NONE, NONE, 0, NONE, {"", 0}};
	struct pq_field f = {0};

	while (pq_next(in, &f))
		switch (f.id) {
		case 1:
			e.type = pq_get_int(in, &f, PQ_I32, 0, 7);
			break;
		case 3:
			e.repetition = pq_get_int(in, &f, PQ_I32, 0, 2);
			break;
		case 4:
			e.name = pq_get_binary(in, &f);
			break;
		case 5:
			e.children = pq_get_int(in, &f, PQ_I32, 1, FUSEE_PARQUET_MAX_COLUMNS);
			break;
		case 6:
			e.converted = pq_get_int(in, &f, PQ_I32, 0, 64);
			break;
		default:
			pq_skip(in, &f);
		}
	return e;
}

/* A part of the schema without values of its own. */
static bool is_inner(const struct element *e, int repetition, int64_t converted)
{
	return e->type == NONE && e->children && e->repetition == repetition &&
	       e->converted == converted;
}

static uint32_t type_of(const struct element *e)
{
	if (e->children || e->repetition != REQUIRED)
		return 0;
	if (e->type == 6)
		return e->converted == UTF8 ? FUSEE_PARQUET_TEXT : 0;
	if (e->type == 2)
		return e->converted == NONE        ? FUSEE_PARQUET_INT64
		       : e->converted == TIMESTAMP ? FUSEE_PARQUET_TIME
						   : 0;
	return e->type == 1 && e->converted == NONE ? FUSEE_PARQUET_INT32 : 0;
}

static char *copy(struct fusee_str s)
{
	return strndup(s.p, s.len);
}

/* The next n elements are columns. */
static int add_columns(struct fusee_parquet_file *f, struct pq_in *in, int64_t n, uint32_t group,
		       struct fusee_str within)
{
	for (; n > 0; n--) {
		struct fusee_parquet_column *c = &f->columns[f->ncolumns];
		struct element e = get_element(in);

		if (in->bad || !type_of(&e) || f->ncolumns == FUSEE_PARQUET_MAX_COLUMNS ||
		    e.name.len > MAX_NAME || within.len > MAX_NAME)
			return -EINVAL;
		*c = (struct fusee_parquet_column){copy(e.name), type_of(&e), group, NULL};
		f->ncolumns++;
		if (group != FUSEE_PARQUET_FLAT)
			c->in = copy(within);
		if (!c->name || (group != FUSEE_PARQUET_FLAT && !c->in))
			return -ENOMEM;
		if (strlen(c->name) != e.name.len || (c->in && strlen(c->in) != within.len) ||
		    (group == FUSEE_PARQUET_MAP && c->type != FUSEE_PARQUET_TEXT))
			return -EINVAL;
	}
	return 0;
}

/* A list of values. */
static int add_values(struct fusee_parquet_file *f, struct pq_in *in, struct fusee_str within)
{
	int r = add_columns(f, in, 1, FUSEE_PARQUET_LIST, within);
	struct fusee_parquet_column *c = &f->columns[f->ncolumns - (r ? 0 : 1)];

	if (r)
		return r;
	r = strcmp(c->name, "element") ? -EINVAL : 0;
	free((char *)(uintptr_t)c->name);
	c->name = NULL;
	return r;
}

static int add_nested(struct fusee_parquet_file *f, struct pq_in *in, const struct element *e)
{
	struct element inner = get_element(in);
	struct pq_in before;

	if (!is_inner(&inner, REPEATED, NONE) || e->children != 1)
		return -EINVAL;
	if (is_inner(e, REQUIRED, MAP))
		return inner.children == 2 ? add_columns(f, in, 2, FUSEE_PARQUET_MAP, e->name)
					   : -EINVAL;
	if (!is_inner(e, REQUIRED, LIST) || inner.children != 1)
		return -EINVAL;
	before = *in;
	inner = get_element(in);
	if (!inner.children) {
		*in = before;
		return add_values(f, in, e->name);
	}
	if (!is_inner(&inner, REQUIRED, NONE))
		return -EINVAL;
	return add_columns(f, in, inner.children, FUSEE_PARQUET_LIST, e->name);
}

int pq_read_schema(struct fusee_parquet_file *f, struct pq_in *in, uint32_t n)
{
	struct element root = get_element(in);
	struct pq_in before;
	uint32_t elements = 1;
	int r = root.children ? 0 : -EINVAL;

	for (int64_t i = 0; !r && i < root.children; i++) {
		uint32_t first = f->ncolumns;
		struct element e;

		before = *in;
		e = get_element(in);
		if (e.children) {
			r = add_nested(f, in, &e);
			elements += !r && f->columns[first].name && e.converted != MAP ? 3 : 2;
		} else {
			*in = before;
			r = add_columns(f, in, 1, FUSEE_PARQUET_FLAT, e.name);
		}
		elements += f->ncolumns - first;
	}
	return r ? r : in->bad || elements != n ? -EINVAL : 0;
}

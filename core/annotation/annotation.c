/* SPDX-License-Identifier: Apache-2.0 */
#include "annotation/annotation.h"

#include <errno.h>
#include <regex.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/dict.h"
#include "base/saturate.h"
#include "profile/str.h"
#include "report/model.h"

#define NO_FUNCTION UINT32_MAX

/* The key of a line or an address of an annotated function; no padding. */
struct key {
	uint32_t function;
	uint32_t mapping; /* of an address; UINT32_MAX: the key is a line's */
	uint64_t at;      /* line or address */
};

/* What has a flat and a cumulative value; `sample` is the last sample in cum. */
struct sums {
	int64_t flat, cum;
	uint32_t sample;
};

/* The key of an annotated function: its name, source file and mapping, as strings of the profile.
 */
struct name_key {
	uint32_t name, file, path, build_id;
};

struct counter {
	struct annotation *a;
	const struct fusee_profile *p;
	bool *matches;        /* by function of the profile */
	struct dict names;    /* struct name_key: an id less 1 is an index into a->functions */
	struct buf functions; /* struct sums, by annotated function */
	struct dict keys;
	struct buf sums; /* struct sums, by key */
	uint32_t type;
};

static void add(struct sums *s, uint32_t sample, int64_t value, bool leaf)
{
	if (leaf)
		saturate_add(&s->flat, value);
	if (s->sample != sample + 1)
		saturate_add(&s->cum, value);
	s->sample = sample + 1;
}

/* ---- functions that match ---- */

static int find_type(struct counter *c, const char *type, struct buf *error)
{
	c->type = c->p->default_type;
	if (type ? !render_find_type(c->p, fusee_text(type), NULL, &c->type)
		 : c->type >= c->p->types.n) {
		buf_printf(error, "the profile has no values of type '%s'", type ? type : "");
		return -EINVAL;
	}
	return 0;
}

static int find_functions(struct counter *c, const regex_t *re)
{
	c->matches = calloc(c->p->functions.n + (size_t)1, sizeof(*c->matches));
	for (uint32_t i = 1; c->matches && i < c->p->functions.n; i++)
		c->matches[i] = render_matches(
			re,
			str_at(c->p, FUSEE_AT(struct fusee_function, c->p->functions, i)->name));
	return c->matches ? 0 : -ENOMEM;
}

static int add_function(struct counter *c, const struct fusee_function *f,
			const struct fusee_mapping *m)
{
	struct annotated_function *to = realloc(c->a->functions, (c->a->n + 1) * sizeof(*to));
	struct sums *sums = buf_grow(&c->functions, sizeof(*sums));

	if (to)
		c->a->functions = to;
	if (!to || !sums)
		return -ENOMEM;
	*sums = (struct sums){0};
	to[c->a->n++] = (struct annotated_function){.name = str_at(c->p, f->name),
						    .file = str_at(c->p, f->file),
						    .library = str_at(c->p, m->path),
						    .build_id = str_at(c->p, m->build_id)};
	return 0;
}

/* The annotated function of function i in a mapping, made if there is none. UINT32_MAX: the
 * function does not match. */
static int function_of(struct counter *c, uint32_t i, uint32_t mapping, uint32_t *ret)
{
	const struct fusee_function *f = FUSEE_AT(struct fusee_function, c->p->functions, i);
	const struct fusee_mapping *m = FUSEE_AT(struct fusee_mapping, c->p->mappings, mapping);
	const struct name_key key = {f->name, f->file, m->path, m->build_id};
	struct annotated_function *to;
	uint32_t id;

	*ret = NO_FUNCTION;
	if (!c->matches[i])
		return 0;
	id = dict_add(&c->names, &key, sizeof(key));
	if (id == DICT_NONE || (id > c->a->n && add_function(c, f, m)))
		return -ENOMEM;
	to = &c->a->functions[id - 1];
	if (f->start_line && (!to->start_line || f->start_line < to->start_line))
		to->start_line = f->start_line;
	*ret = id - 1;
	return 0;
}

/* ---- counting ---- */

static int add_key(struct counter *c, const struct key *k, uint32_t sample, int64_t value,
		   bool leaf)
{
	uint32_t id = dict_add(&c->keys, k, sizeof(*k));
	struct sums *s;

	if (id == DICT_NONE)
		return -ENOMEM;
	if (id > c->sums.len / sizeof(*s)) {
		s = buf_grow(&c->sums, sizeof(*s));
		if (!s)
			return -ENOMEM;
		*s = (struct sums){0};
	}
	add((struct sums *)(void *)c->sums.p + id - 1, sample, value, leaf);
	return 0;
}

/* A location's last line is the function that has the code; those before were inlined into it. */
static int add_location(struct counter *c, const struct fusee_location *l, uint32_t sample,
			int64_t value, bool leaf)
{
	uint32_t function = NO_FUNCTION;
	struct key k;
	int r = 0;

	for (uint32_t i = 0; !r && i < l->nlines; i++) {
		const struct fusee_line *line = FUSEE_AT(struct fusee_line, c->p->lines,
							 l->first_line + i);

		r = function_of(c, line->function, l->mapping, &function);
		if (r || function == NO_FUNCTION)
			continue;
		add((struct sums *)(void *)c->functions.p + function, sample, value, leaf && !i);
		k = (struct key){function, UINT32_MAX, line->line};
		r = add_key(c, &k, sample, value, leaf && !i);
	}
	if (r || function == NO_FUNCTION || !l->mapping)
		return r;
	k = (struct key){function, l->mapping, l->address};
	return add_key(c, &k, sample, value, leaf);
}

static int add_samples(struct counter *c)
{
	const struct fusee_profile *p = c->p;
	int r = 0;

	for (uint32_t i = 0; !r && i < p->samples.n; i++) {
		const struct fusee_sample *s = FUSEE_AT(struct fusee_sample, p->samples, i);
		const struct fusee_stack *stack = FUSEE_AT(struct fusee_stack, p->stacks, s->stack);
		int64_t v = *FUSEE_AT(int64_t, p->values, (uint64_t)i * p->types.n + c->type);

		saturate_add(&c->a->total, v);
		for (uint32_t k = 0; !r && k < stack->n; k++) {
			uint32_t at = *FUSEE_AT(uint32_t, p->stack_locations, stack->first + k);

			r = add_location(c, FUSEE_AT(struct fusee_location, p->locations, at), i, v,
					 !k);
		}
	}
	return r;
}

/* ---- into the result ---- */

static int by_line(const void *a, const void *b)
{
	const struct annotated_line *x = a, *y = b;

	return (x->line > y->line) - (x->line < y->line);
}

static int by_address(const void *a, const void *b)
{
	const struct annotated_address *x = a, *y = b;

	if (x->mapping != y->mapping)
		return x->mapping > y->mapping ? 1 : -1;
	return (x->address > y->address) - (x->address < y->address);
}

static int by_cum(const void *a, const void *b)
{
	const struct annotated_function *x = a, *y = b;

	return (x->cum < y->cum) - (x->cum > y->cum);
}

/* Room for the lines and addresses of each function. */
static int make_room(struct counter *c)
{
	const struct sums *sums = (const struct sums *)(const void *)c->functions.p;

	for (uint32_t i = 1; i < c->keys.n; i++) {
		const struct key *k = c->keys.entries[i].key;
		struct annotated_function *f = &c->a->functions[k->function];

		if (k->mapping == UINT32_MAX)
			f->nlines++;
		else
			f->naddresses++;
	}
	for (uint32_t i = 0; i < c->a->n; i++) {
		struct annotated_function *f = &c->a->functions[i];

		f->lines = calloc(f->nlines + (size_t)1, sizeof(*f->lines));
		f->addresses = calloc(f->naddresses + (size_t)1, sizeof(*f->addresses));
		if (!f->lines || !f->addresses)
			return -ENOMEM;
		f->nlines = f->naddresses = 0;
		f->flat = sums[i].flat;
		f->cum = sums[i].cum;
	}
	return 0;
}

/* Functions that no sample has. */
static void drop_empty(struct annotation *a)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < a->n; i++) {
		struct annotated_function *f = &a->functions[i];

		if (f->nlines) {
			a->functions[n++] = *f;
			continue;
		}
		free(f->lines);
		free(f->addresses);
	}
	a->n = n;
}

static int fill(struct counter *c)
{
	const struct sums *sums = (const struct sums *)(const void *)c->sums.p;
	int r = make_room(c);

	for (uint32_t i = 1; !r && i < c->keys.n; i++) {
		const struct key *k = c->keys.entries[i].key;
		struct annotated_function *f = &c->a->functions[k->function];
		const struct sums *s = &sums[i - 1];

		if (k->mapping == UINT32_MAX)
			f->lines[f->nlines++] = (struct annotated_line){(uint32_t)k->at, s->flat,
									s->cum};
		else
			f->addresses[f->naddresses++] = (struct annotated_address){
				k->mapping, k->at, s->flat, s->cum};
	}
	for (uint32_t i = 0; !r && i < c->a->n; i++) {
		struct annotated_function *f = &c->a->functions[i];

		qsort(f->lines, f->nlines, sizeof(*f->lines), by_line);
		qsort(f->addresses, f->naddresses, sizeof(*f->addresses), by_address);
	}
	drop_empty(c->a);
	if (!r && c->a->n)
		qsort(c->a->functions, c->a->n, sizeof(*c->a->functions), by_cum);
	return r;
}

static int make(struct counter *c, const regex_t *re)
{
	int r = dict_init(&c->keys) || dict_init(&c->names) ? -ENOMEM : 0;

	if (!r)
		r = find_functions(c, re);
	if (!r)
		r = add_samples(c);
	if (!r)
		r = fill(c);
	dict_fini(&c->keys);
	dict_fini(&c->names);
	buf_fini(&c->sums);
	buf_fini(&c->functions);
	free(c->matches);
	return r;
}

int annotation_make(struct annotation *a, const struct fusee_profile *p, const char *regex,
		    const char *type, struct buf *error)
{
	struct counter c = {.a = a, .p = p};
	const struct fusee_value_type *t;
	regex_t re;
	int r = render_compile(&re, "", regex, error);

	*a = (struct annotation){0};
	if (r)
		return r;
	r = find_type(&c, type, error);
	if (!r)
		r = make(&c, &re);
	regfree(&re);
	if (!r) {
		t = FUSEE_AT(struct fusee_value_type, p->types, c.type);
		a->type = str_at(p, t->type);
		a->unit = str_at(p, t->unit);
	}
	if (r) {
		annotation_free(a);
		return r;
	}
	if (!a->n)
		buf_printf(error, "no function matches '%s'", regex);
	return a->n ? 0 : -ENOENT;
}

void annotation_free(struct annotation *a)
{
	for (uint32_t i = 0; i < a->n; i++) {
		free(a->functions[i].lines);
		free(a->functions[i].addresses);
	}
	free(a->functions);
	*a = (struct annotation){0};
}

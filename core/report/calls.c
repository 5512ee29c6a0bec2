/* SPDX-License-Identifier: Apache-2.0 */
#include "report/calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/saturate.h"
#include "base/str.h"

/* ---- functions by name ---- */

static int compare_functions(const void *a, const void *b, void *arg)
{
	const struct render_model *m = arg;
	uint32_t ia = *(const uint32_t *)a, ib = *(const uint32_t *)b;
	int d = str_order(m->functions[ia].shown, m->functions[ib].shown);

	return d ? d : ia < ib ? -1 : ia > ib;
}

static int order_functions(struct render_calls *t, const struct render_model *m)
{
	t->order = malloc((m->nfunctions + (size_t)1) * sizeof(*t->order));
	t->rank = malloc((m->nfunctions + (size_t)1) * sizeof(*t->rank));
	if (!t->order || !t->rank)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->nfunctions; i++)
		t->order[i] = i;
	qsort_r(t->order, m->nfunctions, sizeof(*t->order), compare_functions, (void *)m);
	for (uint32_t i = 0; i < m->nfunctions; i++)
		t->rank[t->order[i]] = i;
	return 0;
}

/* ---- the tree ---- */

static struct render_call *new_call(struct render_calls *t)
{
	struct render_call *c = buf_grow(&t->buf, sizeof(*c));

	t->calls = (struct render_call *)(void *)t->buf.p;
	if (c) {
		*c = (struct render_call){0};
		t->n++;
	}
	return c;
}

/* Calls with the same caller and function are one. */
static uint32_t hash_of(uint32_t parent, uint32_t function)
{
	const uint32_t key[] = {parent, function};

	return (uint32_t)XXH3_64bits(key, sizeof(key));
}

static int make_room(struct render_calls *t)
{
	struct slots more = {.n = t->slots.n ? t->slots.n * 2 : 1024};

	if (!slots_are_few(&t->slots, t->n))
		return 0;
	more.at = calloc(more.n, sizeof(*more.at));
	if (!more.at)
		return -ENOMEM;
	for (uint32_t i = 1; i < t->n; i++)
		slots_add(&more, hash_of(t->calls[i].parent, t->calls[i].function), i);
	free(t->slots.at);
	t->slots = more;
	return 0;
}

/* Another stack has the call too. */
static void join(struct render_call *c, const struct render_frame *f)
{
	c->flags = (c->flags & f->flags & RENDER_INLINED) |
		   ((c->flags | f->flags) & RENDER_GUESSED);
	if (c->line != f->line)
		c->line = 0;
}

/* The index of the call of this frame below parent; 0: no memory. */
static uint32_t child(struct render_calls *t, uint32_t parent, const struct render_frame *f)
{
	struct slots_search at = slots_begin(hash_of(parent, f->function));
	struct render_call *c;
	uint32_t next;

	if (make_room(t))
		return 0;
	while ((next = slots_next(&t->slots, &at))) {
		c = &t->calls[next - 1];
		if (c->parent != parent || c->function != f->function)
			continue;
		join(c, f);
		return next - 1;
	}
	c = new_call(t);
	if (!c)
		return 0;
	c->function = f->function;
	c->parent = parent;
	c->depth = t->calls[parent].depth + 1;
	c->flags = f->flags;
	c->line = f->line;
	slots_put(&t->slots, &at, t->n - 1);
	return t->n - 1;
}

static int add_stack(struct render_calls *t, const struct render_model *m,
		     const struct render_stack *s)
{
	uint32_t at = 0;

	if (s->value < 0 || s->base < 0) {
		t->negative++;
		return 0;
	}
	for (uint32_t i = s->n; i-- > 0;) {
		at = child(t, at, render_frame_at(m, s, i));
		if (!at)
			return -ENOMEM;
	}
	saturate_add(&t->calls[at].self, s->value);
	saturate_add(&t->calls[at].base_self, s->base);
	return 0;
}

/* Makes the lists of children, by name: calls are sorted by the rank of their functions and added
 * from the last to the first. */
static int link_children(struct render_calls *t, uint32_t nfunctions)
{
	uint32_t *starts = calloc(nfunctions + (size_t)1, sizeof(*starts));
	uint32_t *sorted = malloc(t->n * sizeof(*sorted));
	int r = starts && sorted ? 0 : -ENOMEM;

	for (uint32_t i = 1; !r && i < t->n; i++)
		starts[t->rank[t->calls[i].function] + 1]++;
	for (uint32_t i = 0; !r && i < nfunctions; i++)
		starts[i + 1] += starts[i];
	for (uint32_t i = 1; !r && i < t->n; i++)
		sorted[starts[t->rank[t->calls[i].function]]++] = i;
	for (uint32_t i = t->n - 1; !r && i-- > 0;) {
		struct render_call *c = &t->calls[sorted[i]], *parent = &t->calls[c->parent];

		c->next = parent->first;
		parent->first = sorted[i];
	}
	free(starts);
	free(sorted);
	return r;
}

int render_calls_make(struct render_calls *t, const struct render_model *m)
{
	int r;

	*t = (struct render_calls){0};
	r = order_functions(t, m);
	if (!r && !new_call(t))
		r = -ENOMEM;
	for (uint32_t i = 0; !r && i < m->nstacks; i++)
		r = add_stack(t, m, &m->stacks[i]);
	if (!r)
		r = link_children(t, m->nfunctions);
	if (r)
		render_calls_free(t);
	return r;
}

void render_calls_free(struct render_calls *t)
{
	buf_fini(&t->buf);
	free(t->slots.at);
	free(t->order);
	free(t->rank);
	*t = (struct render_calls){0};
}

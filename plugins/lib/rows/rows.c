/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `samples` has a row for each sample and each type of value, except the number of samples, which
 * is a column, and without ids (merge.c); `stacks` has a row for each stack of a sample.
 */
#include <stdlib.h>

#include "internal.h"

#define KEPT_TEXTS (32u << 20) /* bytes of folded stacks; others are folded for each row */
#define NOT_FOLDED UINT64_MAX  /* not yet */
#define NOT_KEPT (UINT64_MAX - 1)

/* ---- stacks ---- */

static uint32_t deepest(const struct fusee_profile *p)
{
	uint32_t n = 0;

	FUSEE_FOR_EACH (struct fusee_stack, s, p->stacks) {
		n = s->n > n ? s->n : n;
	}
	return n;
}

static void number_stacks(struct fusee_rows *r, uint64_t *hashes, uint64_t *ids)
{
	const struct fusee_profile *p = r->p;

	stack_hash_locations(p, hashes);
	FUSEE_FOR_EACH (struct fusee_sample, s, p->samples) {
		if (r->places[s->stack])
			continue;
		r->stacks[r->nstacks] = (struct row_stack){
			.at = NOT_FOLDED,
			.stack = s->stack,
			.id = stack_id(p, FUSEE_AT(struct fusee_stack, p->stacks, s->stack), hashes,
				       ids)};
		r->places[s->stack] = (uint32_t)++r->nstacks;
	}
}

/* The folded text of a stack. 0 or -ENOMEM. */
static int folded(struct fusee_rows *r, struct row_stack *s, struct fusee_str *text)
{
	bool first = s->at == NOT_FOLDED, complete;
	int err;

	if (s->at < NOT_KEPT) {
		*text = (struct fusee_str){r->texts.p + s->at, s->len};
		return 0;
	}
	complete = stack_fold(&r->text, r->p, FUSEE_AT(struct fusee_stack, r->p->stacks, s->stack),
			      r->o.max_text);
	err = r->text.error;
	if (err)
		return err;
	*text = (struct fusee_str){r->text.p, r->text.len};
	r->shortened.stacks += first && !complete;
	s->at = NOT_KEPT;
	if (!first || r->texts.len + r->text.len > KEPT_TEXTS)
		return 0;
	fusee_bytes_add(&r->texts, r->text.p, r->text.len);
	if (r->texts.error)
		return r->texts.error;
	s->at = r->texts.len - r->text.len;
	s->len = (uint32_t)r->text.len;
	return 0;
}

int fusee_rows_fill_stack(struct fusee_rows *r, uint64_t i, struct fusee_rows_stack *row)
{
	struct row_stack *s = &r->stacks[i];
	int err = folded(r, s, &row->stack);

	row->id = s->id;
	return err ? err
		   : rows_frames(r, FUSEE_AT(struct fusee_stack, r->p->stacks, s->stack),
				 &row->frames);
}

int64_t fusee_rows_stack_id(const struct fusee_rows *r, uint64_t i)
{
	return r->stacks[i].id;
}

uint64_t fusee_rows_nstacks(const struct fusee_rows *r)
{
	return r->nstacks;
}

/* ---- samples ---- */

static uint32_t find_count(const struct fusee_profile *p)
{
	for (uint32_t i = 0; i < p->types.n; i++) {
		const struct fusee_value_type *t = FUSEE_AT(struct fusee_value_type, p->types, i);

		if (fusee_text_is(profile_text(p, t->type), "samples"))
			return i;
	}
	return p->types.n;
}

uint64_t fusee_rows_nsamples(const struct fusee_rows *r)
{
	return (uint64_t)r->nsamples * r->per_sample;
}

int fusee_rows_fill_sample(struct fusee_rows *r, uint64_t i, struct fusee_rows_sample *row)
{
	const struct fusee_profile *p = r->p;
	uint64_t n = i / r->per_sample, at = r->merged ? r->merged[n] : n;
	uint32_t type = (uint32_t)(i % r->per_sample);
	const struct fusee_sample *s = FUSEE_AT(struct fusee_sample, p->samples, at);
	const int64_t *values = r->sums ? r->sums + n * p->types.n
					: FUSEE_AT(int64_t, p->values, n * p->types.n);
	struct row_stack *stack = &r->stacks[r->places[s->stack] - 1];
	const struct fusee_value_type *t;

	if (r->per_sample < p->types.n && type >= r->count_type)
		type++;
	t = FUSEE_AT(struct fusee_value_type, p->types, type);
	row->sample_type = rows_bounded(r, profile_text(p, t->type));
	row->unit = rows_bounded(r, profile_text(p, t->unit));
	row->value = values[type];
	row->count = r->count_type < p->types.n ? values[r->count_type] : 0;
	row->stack_id = stack->id;
	row->pid = s->pid;
	row->tid = s->tid;
	rows_labels(r, s, row);
	return folded(r, stack, &row->stack);
}

/* ---- both ---- */

struct fusee_rows_shortened fusee_rows_count_shortened(const struct fusee_rows *r)
{
	return r->shortened;
}

void fusee_rows_close(struct fusee_rows *r)
{
	if (!r)
		return;
	free(r->stacks);
	free(r->places);
	free(r->frames);
	free(r->merged);
	free(r->sums);
	fusee_bytes_fini(&r->text);
	fusee_bytes_fini(&r->texts);
	free(r);
}

int fusee_rows_open(struct fusee_rows **ret, const struct fusee_profile *p,
		    const struct fusee_rows_options *o)
{
	struct fusee_rows *r = calloc(1, sizeof(*r));
	uint64_t *hashes = calloc(p->locations.n + 1ull, sizeof(*hashes));
	uint64_t *ids = calloc(deepest(p) + 1ull, sizeof(*ids));
	int err = r && hashes && ids ? 0 : -ENOMEM;

	if (!err) {
		r->p = p;
		r->o = *o;
		r->count_type = find_count(p);
		r->per_sample = p->types.n - (r->count_type < p->types.n && p->types.n > 1);
		r->stacks = calloc(p->stacks.n + 1ull, sizeof(*r->stacks));
		r->places = calloc(p->stacks.n + 1ull, sizeof(*r->places));
		err = r->stacks && r->places ? rows_merge(r) : -ENOMEM;
	}
	if (!err)
		number_stacks(r, hashes, ids);
	free(hashes);
	free(ids);
	if (err) {
		fusee_rows_close(r);
		r = NULL;
	}
	*ret = r;
	return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Without ids: samples that differ in their trace and span alone are one row, so that a profile
 * with ids takes no more rows than without. */
#include <stdlib.h>

#include "internal.h"

static bool has_ids(const struct fusee_profile *p)
{
	FUSEE_FOR_EACH (struct fusee_sample, s, p->samples) {
		if (s->trace_id[0] || s->trace_id[1] || s->span_id)
			return true;
	}
	return false;
}

/* A builder gives equal sets of labels one place. */
static bool are_alike(const struct fusee_sample *a, const struct fusee_sample *b)
{
	return a->stack == b->stack && a->pid == b->pid && a->tid == b->tid &&
	       a->nlabels == b->nlabels && (!a->nlabels || a->first_label == b->first_label);
}

static uint64_t hash(const struct fusee_sample *s)
{
	const uint32_t key[] = {s->stack, s->pid, s->tid, s->nlabels ? s->first_label : 0};
	uint64_t h = 0;

	for (uint32_t i = 0; i < sizeof(key) / sizeof(*key); i++) {
		h = (h ^ key[i]) * 0x9e3779b97f4a7c15ull;
		h ^= h >> 32;
	}
	return h;
}

static int64_t sum(int64_t a, int64_t b)
{
	int64_t r;

	return !__builtin_add_overflow(a, b, &r) ? r : a < 0 ? INT64_MIN : INT64_MAX;
}

/* Adds sample i to the row of samples like it. slots: rows + 1 by hash, a power of 2 of them. */
static void add(struct fusee_rows *r, uint32_t i, uint32_t *slots, uint64_t mask)
{
	const struct fusee_profile *p = r->p;
	const struct fusee_sample *s = FUSEE_AT(struct fusee_sample, p->samples, i);
	const int64_t *values = FUSEE_AT(int64_t, p->values, (uint64_t)i * p->types.n);
	uint64_t at = hash(s) & mask;
	int64_t *to;

	while (slots[at] &&
	       !are_alike(FUSEE_AT(struct fusee_sample, p->samples, r->merged[slots[at] - 1]), s))
		at = (at + 1) & mask;
	if (!slots[at]) {
		r->merged[r->nsamples] = i;
		slots[at] = ++r->nsamples;
	}
	to = r->sums + (uint64_t)(slots[at] - 1) * p->types.n;
	for (uint32_t k = 0; k < p->types.n; k++)
		to[k] = sum(to[k], values[k]);
}

int rows_merge(struct fusee_rows *r)
{
	const struct fusee_profile *p = r->p;
	uint64_t n = 64;
	uint32_t *slots;

	if (r->o.ids || !has_ids(p)) {
		r->nsamples = p->samples.n;
		return 0;
	}
	while (n < 2ull * p->samples.n)
		n *= 2;
	slots = calloc(n, sizeof(*slots));
	r->merged = calloc(p->samples.n, sizeof(*r->merged));
	r->sums = calloc((uint64_t)p->samples.n * p->types.n, sizeof(*r->sums));
	if (!slots || !r->merged || !r->sums) {
		free(slots);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < p->samples.n; i++)
		add(r, i, slots, n - 1);
	free(slots);
	return 0;
}

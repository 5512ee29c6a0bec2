/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples are sorted by their set of labels and then by their stack, so that a series is a range of
 * the order, in which equal stacks are adjacent.
 */
#include <stdlib.h>

#include "internal.h"

struct place {
	uint32_t set, stack, sample;
};

struct series {
	const struct fusee_profile *p;
	const struct fusee_series_options *o;
	struct sets sets;
	struct labels labels; /* of the sample that is read */
	struct place *order;
	struct fusee_sample *samples;
	int64_t *values;
};

static bool is_without(const struct fusee_series_options *o, struct fusee_str key)
{
	FUSEE_FOR_EACH (struct fusee_str, s, o->without) {
		if (fusee_text_same(*s, key))
			return true;
	}
	return false;
}

/* Labels with a value for each request: those that programs have given their threads, and ids,
 * which are labels in pprof files that are read again. */
static bool is_of_request(const struct fusee_label *l)
{
	return l->str.p && (l->num == FUSEE_LABEL_OWN || fusee_text_is(l->key, "trace_id") ||
			    fusee_text_is(l->key, "span_id"));
}

static int64_t set_of(struct series *s, const struct fusee_sample *sample)
{
	const struct fusee_profile *p = s->p;

	labels_begin(&s->labels);
	for (uint32_t i = 0; i < sample->nlabels; i++) {
		const struct fusee_label *l = FUSEE_AT(struct fusee_label, p->labels,
						       sample->first_label + i);

		if (!is_of_request(l) && !is_without(s->o, l->key))
			labels_add(&s->labels, s->o, l);
	}
	FUSEE_FOR_EACH (struct fusee_label, l, p->resource) {
		labels_add(&s->labels, s->o, l);
	}
	if (s->labels.text.error)
		return s->labels.text.error;
	labels_end(&s->labels, s->o);
	return sets_put(&s->sets, &s->labels);
}

static int compare(const void *x, const void *y)
{
	const struct place *a = x, *b = y;

	if (a->set != b->set)
		return a->set < b->set ? -1 : 1;
	if (a->stack != b->stack)
		return a->stack < b->stack ? -1 : 1;
	return a->sample < b->sample ? -1 : a->sample > b->sample;
}

static int sort(struct series *s)
{
	const struct fusee_profile *p = s->p;

	for (uint32_t i = 0; i < p->samples.n; i++) {
		const struct fusee_sample *sample = FUSEE_AT(struct fusee_sample, p->samples, i);
		int64_t set = set_of(s, sample);

		if (set < 0)
			return (int)set;
		s->order[i] = (struct place){(uint32_t)set, sample->stack, i};
	}
	qsort(s->order, p->samples.n, sizeof(*s->order), compare);
	return 0;
}

/* The samples order[first] to order[end - 1], without labels; their number. */
static uint32_t merge(struct series *s, uint32_t first, uint32_t end)
{
	const struct fusee_profile *p = s->p;
	uint32_t n = 0, types = p->types.n;

	for (uint32_t i = first; i < end; i++) {
		uint64_t from = (uint64_t)s->order[i].sample * types;
		int64_t *to;

		if (i == first || s->order[i].stack != s->order[i - 1].stack) {
			s->samples[n] = (struct fusee_sample){.stack = s->order[i].stack};
			memset(s->values + (uint64_t)n * types, 0, types * sizeof(int64_t));
			n++;
		}
		to = s->values + (uint64_t)(n - 1) * types;
		for (uint32_t k = 0; k < types; k++)
			to[k] += *FUSEE_AT(int64_t, p->values, from + k);
	}
	return n;
}

static void set_id(uint8_t id[16], uint64_t hash)
{
	for (int i = 0; i < 16; i++) {
		if (i == 8)
			hash = hash * 0x9e3779b97f4a7c15ull ^ hash >> 32;
		id[i] ^= (uint8_t)(hash >> 8 * (i % 8));
	}
}

static int hand_on(struct series *s, uint32_t first, uint32_t end,
		   int (*each)(void *arg, const struct fusee_series *), void *arg)
{
	uint32_t set = s->order[first].set;
	const struct labels *l = &s->sets.at[set];
	struct fusee_profile part = {0};
	struct fusee_series series = {
		.labels = {l->at, l->n, sizeof(*l->at)}, .profile = &part, .dropped = l->dropped};
	uint32_t n = merge(s, first, end);

	memcpy(&part, s->p, s->p->size < sizeof(part) ? s->p->size : sizeof(part));
	part.size = sizeof(part);
	part.samples = (struct fusee_table){s->samples, n, sizeof(*s->samples)};
	part.values = (struct fusee_table){s->values, n * part.types.n, sizeof(int64_t)};
	part.labels.n = part.resource.n = part.times.n = 0;
	if (first)
		part.losses.n = 0; /* losses belong to the profile and are sent once */
	set_id(part.id, s->sets.hashes[set]);
	return each(arg, &series);
}

int fusee_series_each(const struct fusee_profile *p, const struct fusee_series_options *o,
		      int (*each)(void *arg, const struct fusee_series *), void *arg)
{
	struct series s = {.p = p, .o = o};
	uint32_t n = p->samples.n, first = 0;
	int r = -ENOMEM;

	s.order = malloc((n + 1ull) * sizeof(*s.order));
	s.samples = malloc((n + 1ull) * sizeof(*s.samples));
	s.values = malloc(((uint64_t)n * p->types.n + 1) * sizeof(*s.values));
	if (s.order && s.samples && s.values)
		r = sort(&s);
	for (uint32_t end = 1; !r && end <= n; end++) {
		if (end < n && s.order[end].set == s.order[first].set)
			continue;
		r = hand_on(&s, first, end, each, arg);
		first = end;
	}
	sets_fini(&s.sets);
	labels_fini(&s.labels);
	free(s.order);
	free(s.samples);
	free(s.values);
	return r;
}

const struct fusee_label *fusee_series_label(const struct fusee_series *s, const char *name)
{
	FUSEE_FOR_EACH (struct fusee_label, l, s->labels) {
		if (labels_is(l->key, (struct fusee_str){name, strlen(name)}))
			return l;
	}
	return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "profile/internal/builder_state.h"

static struct fusee_str stage_text(enum loss_stage stage)
{
	const char *text = loss_stage_text(stage);

	return fusee_text(text);
}

static void *table(struct builder *b, struct fusee_table *t, uint64_t n, uint32_t size)
{
	void *p = n < UINT32_MAX ? arena_add(&b->arena, n * size) : NULL;

	if (!p) {
		builder_fail(b, -ENOMEM);
		return NULL;
	}
	b->table_bytes += n * size;
	*t = (struct fusee_table){p, (uint32_t)n, size};
	return p;
}

static void make_strings(struct builder *b)
{
	struct fusee_str *s = table(b, &b->profile.strings, b->strings.n, sizeof(*s));

	for (uint32_t i = 0; s && i < b->strings.n; i++)
		s[i] = builder_text(b, i);
}

static void make_functions(struct builder *b)
{
	struct fusee_function *f = table(b, &b->profile.functions, b->functions.n, sizeof(*f));

	for (uint32_t i = 1; f && i < b->functions.n; i++)
		memcpy(&f[i], b->functions.entries[i].key, sizeof(*f));
}

static void make_mappings(struct builder *b)
{
	struct fusee_mapping *m = table(b, &b->profile.mappings, b->mappings.n, sizeof(*m));
	const uint32_t *flags = (const uint32_t *)(const void *)b->mapping_flags.p;

	for (uint32_t i = 1; m && i < b->mappings.n; i++) {
		const struct mapping_key *k = b->mappings.entries[i].key;

		m[i] = (struct fusee_mapping){.path = k->path,
					      .build_id = k->build_id,
					      .flags = flags[i],
					      .start = k->start,
					      .limit = k->limit,
					      .offset = k->offset};
	}
}

static void make_locations(struct builder *b)
{
	struct fusee_location *l = table(b, &b->profile.locations, b->locations.n, sizeof(*l));
	struct fusee_line *lines;
	uint64_t n = 0;

	for (uint32_t i = 1; l && i < b->locations.n; i++) {
		memcpy(&l[i], b->locations.entries[i].key, sizeof(*l));
		l[i].first_line = (uint32_t)n;
		n += l[i].nlines;
	}
	lines = table(b, &b->profile.lines, n, sizeof(*lines));
	for (uint32_t i = 1; l && lines && i < b->locations.n; i++)
		memcpy(&lines[l[i].first_line],
		       (const char *)b->locations.entries[i].key + sizeof(*l),
		       l[i].nlines * sizeof(*lines));
}

static void make_stacks(struct builder *b)
{
	b->profile.stacks = (struct fusee_table){b->stacks.at, b->stacks.n, sizeof(*b->stacks.at)};
	b->profile.stack_locations = (struct fusee_table){b->stacks.locations, b->stacks.nlocations,
							  sizeof(*b->stacks.locations)};
}

static void make_label(const struct builder *b, const struct label_key *from,
		       struct fusee_label *to)
{
	*to = (struct fusee_label){.key = builder_text(b, from->key), .num = from->num};
	if (from->is_str)
		to->str = builder_text(b, from->str);
	else
		to->unit = builder_text(b, from->unit);
}

/* The labels of each set. Returns where those of each begin. NULL: no memory. */
static uint32_t *make_labels(struct builder *b)
{
	uint32_t *first = arena_add(&b->arena, (b->label_sets.n + 1ull) * sizeof(*first));
	struct fusee_label *to;
	uint64_t n = 0;

	for (uint32_t i = 0; i < b->label_sets.n; i++)
		n += b->label_sets.entries[i].len / sizeof(struct label_key);
	to = table(b, &b->profile.labels, n, sizeof(*to));
	for (uint32_t i = 0; first && to && i < b->label_sets.n; i++) {
		const struct label_key *from = b->label_sets.entries[i].key;
		uint32_t own = b->label_sets.entries[i].len / (uint32_t)sizeof(*from);

		for (uint32_t k = 0; k < own; k++)
			make_label(b, &from[k], &to[first[i] + k]);
		first[i + 1] = first[i] + own;
	}
	return to ? first : NULL;
}

/* first_label becomes an index of labels. */
static void place_labels(struct builder *b)
{
	const uint32_t *first = make_labels(b);

	if (!first) {
		builder_fail(b, -ENOMEM);
		return;
	}
	for (uint32_t i = 1; i < b->samples.n; i++) {
		struct fusee_sample *s = &b->samples.at[i];
		uint32_t set = s->first_label;

		s->first_label = first[set];
		s->nlabels = first[set + 1] - first[set];
	}
}

/* places[id - 1]: where the sample is in the profile. NULL: no memory. */
static uint32_t *place_samples(struct builder *b)
{
	uint32_t *places = calloc(b->samples.n, sizeof(*places)),
		 *next = calloc(b->nparts + 2ull, sizeof(*next));

	for (uint32_t i = 1; places && next && i < b->samples.n; i++)
		next[b->samples.parts[i] + 1]++;
	for (uint32_t p = 0; places && next && p < b->nparts; p++)
		next[p + 1] += next[p];
	for (uint32_t i = 1; places && next && i < b->samples.n; i++)
		places[i - 1] = next[b->samples.parts[i]]++;
	if (!next) {
		free(places);
		places = NULL;
	}
	free(next);
	if (!places)
		builder_fail(b, -ENOMEM);
	return places;
}

/* Puts samples and their values in the order of their parts, if there are several. */
static void move_samples(struct builder *b, const uint32_t *places)
{
	size_t size = b->ntypes * sizeof(int64_t);
	uint32_t n = b->samples.n - 1;
	struct fusee_sample *s = table(b, &b->profile.samples, n, sizeof(*s));
	char *values = b->ntypes ? table(b, &b->profile.values, n, (uint32_t)size) : NULL;

	for (uint32_t i = 0; s && i < n; i++)
		s[places[i]] = b->samples.at[i + 1];
	for (uint32_t i = 0; values && i < n; i++)
		memcpy(values + places[i] * size, b->values.p + i * size, size);
	if (values)
		buf_fini(&b->values);
}

static int compare_times(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The times of each sample, in order. s: sample of the builder's number less 1. */
static void make_times(struct builder *b, struct fusee_sample *s)
{
	const struct sample_time *t = (const struct sample_time *)(const void *)b->times.p;
	size_t n = b->times.len / sizeof(*t);
	uint64_t *to = n ? table(b, &b->profile.times, n, sizeof(*to)) : NULL, first = 0;

	if (!to)
		return;
	for (size_t i = 0; i < n; i++)
		s[t[i].sample - 1].ntimes++;
	for (uint32_t i = 0; i < b->samples.n - 1; i++) {
		s[i].first_time = first;
		first += s[i].ntimes;
		s[i].ntimes = 0;
	}
	for (size_t i = 0; i < n; i++) {
		struct fusee_sample *own = &s[t[i].sample - 1];

		to[own->first_time + own->ntimes++] = t[i].ns;
	}
	for (uint32_t i = 0; i < b->samples.n - 1; i++)
		if (s[i].ntimes > 1)
			qsort(to + s[i].first_time, s[i].ntimes, sizeof(*to), compare_times);
}

static void make_samples(struct builder *b)
{
	struct fusee_sample *s = b->samples.at + 1;
	uint32_t *places;

	place_labels(b);
	make_times(b, s);
	b->profile.samples = (struct fusee_table){s, b->samples.n - 1, sizeof(*s)};
	b->profile.values.at = b->values.p;
	if (b->nparts <= 1)
		return;
	places = place_samples(b);
	if (places)
		move_samples(b, places);
	free(places);
}

/* Losses of parts are added in order mostly. */
static void sort_losses(struct builder *b)
{
	struct loss *at = (struct loss *)(void *)b->losses.p, moved;
	size_t n = b->losses.len / sizeof(*at), k;

	for (size_t i = 1; i < n; i++) {
		moved = at[i];
		for (k = i; k && at[k - 1].part > moved.part; k--)
			at[k] = at[k - 1];
		at[k] = moved;
	}
}

static void make_rest(struct builder *b)
{
	struct fusee_profile *p = &b->profile;
	const uint32_t *comment = (const uint32_t *)(const void *)b->comments.strings.p;
	const struct loss *loss = (const struct loss *)(const void *)b->losses.p;
	size_t ncomments = b->comments.strings.len / sizeof(*comment),
	       nlosses = b->losses.len / sizeof(*loss);
	struct fusee_str *c = table(b, &p->comments, ncomments, sizeof(*c));
	struct fusee_label *l = table(b, &p->losses, nlosses, sizeof(*l));

	for (size_t i = 0; c && i < ncomments; i++)
		c[i] = builder_text(b, comment[i]);
	for (size_t i = 0; l && i < nlosses; i++)
		l[i] = (struct fusee_label){.key = builder_text(b, loss[i].reason),
					    .str = stage_text(loss[i].stage),
					    .num = loss[i].n};
	p->types = (struct fusee_table){b->types.p, b->ntypes, sizeof(struct fusee_value_type)};
	p->values = (struct fusee_table){p->values.at, (b->samples.n - 1) * b->ntypes,
					 sizeof(int64_t)};
	p->resource = (struct fusee_table){b->resource.p, (uint32_t)(b->resource.len / sizeof(*l)),
					   sizeof(*l)};
}

int builder_finish(struct builder *b, const struct fusee_profile **ret)
{
	if (builder_is_closed(b))
		return b->error;
	b->finished = true;
	make_strings(b);
	make_functions(b);
	make_mappings(b);
	make_locations(b);
	make_stacks(b);
	make_samples(b);
	sort_losses(b);
	make_rest(b);
	if (b->error)
		return b->error;
	*ret = &b->profile;
	return 0;
}

void builder_places(const struct builder *b, struct builder_place *places, uint32_t n)
{
	const struct loss *loss = (const struct loss *)(const void *)b->losses.p;

	memset(places, 0, (n + 1ull) * sizeof(*places));
	for (uint32_t i = 1; i < b->samples.n; i++)
		places[b->samples.parts[i] < n ? b->samples.parts[i] + 1 : 0].sample++;
	for (size_t i = 0; i < b->losses.len / sizeof(*loss); i++)
		places[loss[i].part < n ? loss[i].part + 1 : 0].loss++;
	places[0] = (struct builder_place){0};
	for (uint32_t p = 0; p < n; p++) {
		places[p + 1].sample += places[p].sample;
		places[p + 1].loss += places[p].loss;
	}
}

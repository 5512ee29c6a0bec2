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
	struct fusee_stack *s = table(b, &b->profile.stacks, b->stacks.n, sizeof(*s));
	uint64_t n = 0;
	uint32_t *to;

	for (uint32_t i = 1; s && i < b->stacks.n; i++) {
		s[i].first = (uint32_t)n;
		s[i].n = b->stacks.entries[i].len / sizeof(*to);
		n += s[i].n;
	}
	to = table(b, &b->profile.stack_locations, n, sizeof(*to));
	for (uint32_t i = 1; s && to && i < b->stacks.n; i++)
		memcpy(&to[s[i].first], b->stacks.entries[i].key, b->stacks.entries[i].len);
}

static void make_labels(struct builder *b, const struct sample_key *k, struct fusee_label *to)
{
	const struct label_key *from = (const struct label_key *)(k + 1);

	for (uint32_t i = 0; i < k->nlabels; i++) {
		to[i] = (struct fusee_label){.key = builder_text(b, from[i].key),
					     .num = from[i].num};
		if (from[i].is_str)
			to[i].str = builder_text(b, from[i].str);
		else
			to[i].unit = builder_text(b, from[i].unit);
	}
}

static uint32_t part_of(const struct builder *b, uint32_t id)
{
	return ((const struct sample_key *)b->samples.entries[id].key)->part;
}

/* places[id - 1]: where the sample is in the profile. NULL: no memory. */
static uint32_t *place_samples(struct builder *b)
{
	uint32_t *places = calloc(b->samples.n, sizeof(*places)),
		 *next = calloc(b->nparts + 2ull, sizeof(*next));

	for (uint32_t i = 1; places && next && i < b->samples.n; i++)
		next[part_of(b, i) + 1]++;
	for (uint32_t p = 0; places && next && p < b->nparts; p++)
		next[p + 1] += next[p];
	for (uint32_t i = 1; places && next && i < b->samples.n; i++)
		places[i - 1] = next[part_of(b, i)]++;
	if (!next) {
		free(places);
		places = NULL;
	}
	free(next);
	if (!places)
		builder_fail(b, -ENOMEM);
	return places;
}

/* Moves the values of samples whose place differs from the order of their addition. */
static void move_values(struct builder *b, const uint32_t *places)
{
	size_t size = b->ntypes * sizeof(int64_t);
	char *to = table(b, &b->profile.values, b->samples.n - 1, (uint32_t)size);

	for (uint32_t i = 1; to && i < b->samples.n; i++)
		memcpy(to + places[i - 1] * size, b->values.p + (i - 1) * size, size);
	if (to)
		buf_fini(&b->values);
}

static int compare_times(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The times of each sample, in order. */
static void make_times(struct builder *b, struct fusee_sample *s, const uint32_t *places)
{
	const struct sample_time *t = (const struct sample_time *)(const void *)b->times.p;
	size_t n = b->times.len / sizeof(*t);
	uint64_t *to = n ? table(b, &b->profile.times, n, sizeof(*to)) : NULL, first = 0;

	if (!to)
		return;
	for (size_t i = 0; i < n; i++)
		s[places[t[i].sample - 1]].ntimes++;
	for (uint32_t i = 0; i < b->samples.n - 1; i++) {
		s[i].first_time = first;
		first += s[i].ntimes;
		s[i].ntimes = 0;
	}
	for (size_t i = 0; i < n; i++) {
		struct fusee_sample *own = &s[places[t[i].sample - 1]];

		to[own->first_time + own->ntimes++] = t[i].ns;
	}
	for (uint32_t i = 0; i < b->samples.n - 1; i++)
		if (s[i].ntimes > 1)
			qsort(to + s[i].first_time, s[i].ntimes, sizeof(*to), compare_times);
}

static void make_samples(struct builder *b)
{
	uint32_t *places = place_samples(b);
	struct fusee_sample *s = table(b, &b->profile.samples, b->samples.n - 1, sizeof(*s));
	struct fusee_label *labels;
	uint64_t n = 0;

	for (uint32_t i = 1; s && places && i < b->samples.n; i++) {
		const struct sample_key *k = b->samples.entries[i].key;

		s[places[i - 1]] = (struct fusee_sample){.stack = k->stack,
							 .first_label = (uint32_t)n,
							 .nlabels = k->nlabels,
							 .pid = k->pid,
							 .tid = k->tid};
		n += k->nlabels;
	}
	labels = table(b, &b->profile.labels, n, sizeof(*labels));
	for (uint32_t i = 1; s && places && labels && i < b->samples.n; i++)
		make_labels(b, b->samples.entries[i].key, labels + s[places[i - 1]].first_label);
	b->profile.values.at = b->values.p;
	if (s && places)
		make_times(b, s, places);
	if (places && b->nparts > 1 && b->ntypes)
		move_values(b, places);
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
	const uint32_t *comment = (const uint32_t *)(const void *)b->comments.p;
	const struct loss *loss = (const struct loss *)(const void *)b->losses.p;
	size_t ncomments = b->comments.len / sizeof(*comment),
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
		places[part_of(b, i) < n ? part_of(b, i) + 1 : 0].sample++;
	for (size_t i = 0; i < b->losses.len / sizeof(*loss); i++)
		places[loss[i].part < n ? loss[i].part + 1 : 0].loss++;
	places[0] = (struct builder_place){0};
	for (uint32_t p = 0; p < n; p++) {
		places[p + 1].sample += places[p].sample;
		places[p + 1].loss += places[p].loss;
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The profiles of a file of samples: types, losses, and a profile for each of its windows. */
#include <errno.h>
#include <stdlib.h>

#include "loss/comment.h"
#include "parquet/internal/reading.h"

/* Labels that are columns of their own. */
const char *const parquet_own_labels[OWN] = {
	[HOST] = "host",       [SERVICE] = "service_name",
	[PROCESS] = "process", [NAMESPACE] = "namespace",
	[POD] = "pod",         [CONTAINER] = "container",
	[THREAD] = "thread",   [TRACE_ID] = "trace_id",
	[SPAN_ID] = "span_id",
};

/* ---- the profile ---- */

/* "fusee.type.0" = "samples", "fusee.type.0.unit" = "count" .. */
int parquet_profile_types(struct reading *r)
{
	char key[48];

	for (; r->ntypes < MAX_TYPES; r->ntypes++) {
		const struct fusee_str *name, *unit;

		snprintf(key, sizeof(key), "fusee.type.%u", r->ntypes);
		name = fusee_parquet_pair(r->t.file, fusee_text(key));
		snprintf(key, sizeof(key), "fusee.type.%u.unit", r->ntypes);
		unit = fusee_parquet_pair(r->t.file, fusee_text(key));
		if (!name || !unit)
			break;
		r->types[r->ntypes][0] = *name;
		r->types[r->ntypes][1] = *unit;
	}
	r->count_type = 0;
	while (r->count_type < r->ntypes &&
	       !str_equal(r->types[r->count_type][0], fusee_text("samples")))
		r->count_type++;
	r->first_type = r->count_type ? 0 : 1;
	return r->ntypes ? 0 : reading_fail(r, "it does not say which types its samples have");
}

uint32_t parquet_profile_type(const struct reading *r, uint64_t row)
{
	struct fusee_str name = parquet_text(&r->t, SAMPLE_TYPE, row),
			 unit = parquet_text(&r->t, UNIT, row);
	uint32_t i = 0;

	while (i < r->ntypes &&
	       (!str_equal(r->types[i][0], name) || !str_equal(r->types[i][1], unit)))
		i++;
	return i;
}

static uint32_t copy(struct builder *b, struct fusee_str s)
{
	return builder_string(b, s.p, s.len);
}

static uint32_t default_type(const struct reading *r)
{
	const struct fusee_str *pair = fusee_parquet_pair(r->t.file,
							  fusee_text("fusee.default_type"));

	for (uint32_t i = 0; pair && i < r->ntypes; i++)
		if (str_equal(r->types[i][0], *pair))
			return i;
	return r->ntypes - 1;
}

static int add_type(struct builder *b, const struct fusee_str type[2])
{
	char *name = strndup(type[0].p, type[0].len), *unit = strndup(type[1].p, type[1].len);
	int err = name && unit ? 0 : -ENOMEM;

	if (!err)
		builder_type(b, name, unit);
	free(name);
	free(unit);
	return err;
}

int parquet_profile_begin(struct reading *r)
{
	struct fusee_profile *p;
	int err = builder_new(&r->b);

	r->places = calloc(r->merged.n + 1ull, sizeof(*r->places));
	if (!err && !r->places)
		err = -ENOMEM;
	for (uint32_t i = 0; !err && i < r->ntypes; i++)
		err = add_type(r->b, r->types[i]);
	if (err)
		return err;
	p = builder_profile(r->b);
	p->default_type = default_type(r);
	p->period_type = copy(r->b, r->types[p->default_type][0]);
	p->period_unit = copy(r->b, r->types[p->default_type][1]);
	return 0;
}

/* ---- losses ---- */

/* "lost.ring full" = "12", of this stage. */
static int add_loss_of(struct builder *b, struct fusee_str key, struct fusee_str value,
		       const char *stage)
{
	struct fusee_label l = {.str = fusee_text(stage)};
	char begin[32], number[32], *reason;
	int n = snprintf(begin, sizeof(begin), "%s.", stage);

	if (key.len <= (uint64_t)n || memcmp(key.p, begin, (size_t)n) ||
	    value.len >= sizeof(number))
		return 0;
	reason = strndup(key.p + n, key.len - (uint64_t)n);
	if (!reason)
		return -ENOMEM;
	memcpy(number, value.p, value.len);
	number[value.len] = '\0';
	l.key = fusee_text(reason);
	builder_loss(b, loss_stage_of(&l), reason, strtoll(number, NULL, 10));
	free(reason);
	return 0;
}

/* Adds the loss of a pair; its key has the loss's name from `at` on. */
static int add_loss(struct builder *b, const struct fusee_str pair[2], uint64_t at)
{
	struct fusee_str key = {pair[0].p + at, pair[0].len - at};
	int err = add_loss_of(b, key, pair[1], loss_stage_text(LOSS_TICK));

	return err ? err : add_loss_of(b, key, pair[1], loss_stage_text(LOSS_STACK));
}

/* "fusee.lost.ring full" = "12" */
static int add_all_losses(struct reading *r)
{
	const struct fusee_str own = fusee_text("fusee."), *pair;
	int err = 0;

	for (uint32_t i = 0; !err && (pair = fusee_parquet_pair_at(r->t.file, i)); i++)
		if (pair[0].len > own.len && !memcmp(pair[0].p, own.p, own.len))
			err = add_loss(r->b, pair, own.len);
	return err;
}

int parquet_profile_losses(struct reading *r, uint32_t part)
{
	const struct parquet_merged *m = &r->merged;
	uint32_t low = 0, high = m->nlosses;
	int err = 0;

	builder_part(r->b, part);
	if (!r->is_merged)
		return add_all_losses(r);
	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (m->losses[middle].part < part)
			low = middle + 1;
		else
			high = middle;
	}
	for (; !err && low < m->nlosses && m->losses[low].part == part; low++)
		err = add_loss(r->b, fusee_parquet_pair_at(r->t.file, m->losses[low].pair),
			       m->losses[low].at);
	return err;
}

/* ---- handing over ---- */

static void slice(struct fusee_table *t, uint32_t first, uint32_t end)
{
	t->at = (const char *)t->at + (uint64_t)first * t->stride;
	t->n = end - first;
}

/* Parts are slices of one profile's tables. */
int parquet_profile_deliver(struct reading *r, int (*each)(void *, const struct fusee_profile *),
			    void *arg)
{
	uint32_t *kinds = calloc(r->merged.n + 1ull, sizeof(*kinds));
	const struct fusee_profile *all = NULL;
	int err = kinds ? 0 : -ENOMEM;

	for (uint32_t i = 0; !err && i < r->merged.n; i++)
		kinds[i] = copy(r->b, r->merged.parts[i].kind);
	if (!err) {
		err = builder_finish(r->b, &all);
		builder_places(r->b, r->places, r->merged.n);
	}
	for (uint32_t i = 0; !err && i < r->merged.n; i++) {
		const struct parquet_part *part = &r->merged.parts[i];
		const struct builder_place *at = &r->places[i];
		struct fusee_profile p = *all;

		slice(&p.samples, at[0].sample, at[1].sample);
		slice(&p.losses, at[0].loss, at[1].loss);
		slice(&p.values, at[0].sample * p.types.n, at[1].sample * p.types.n);
		p.kind = kinds[i];
		p.period = part->period;
		p.start_ns = (uint64_t)part->ts * 1000;
		p.duration_ns = (uint64_t)part->duration;
		if (p.samples.n) {
			r->window->nwindows++;
			r->window->nsamples += p.samples.n;
			r->window->stopped = each(arg, &p);
			err = r->window->stopped;
		}
	}
	free(kinds);
	return err ? err : 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "query/sums.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/saturate.h"
#include "profile/str.h"
#include "report/labels.h"

#define SECOND 1000000000ull
#define POINTS 60

struct point_key {
	uint32_t group, pad;
	uint64_t start_ns;
};

int sums_init(struct sums *s, const char *by, struct buf *error)
{
	*s = (struct sums){0};
	for (const char *p = by ? by : ""; *p;) {
		size_t n = strcspn(p, ",");

		if (!n || s->nkeys == SUMS_MAX_KEYS) {
			buf_printf(error, "--by: it takes up to %d labels, as in service_name,pod",
				   SUMS_MAX_KEYS);
			return -EINVAL;
		}
		s->keys[s->nkeys++] = (struct fusee_str){p, n};
		p += n;
		p += *p == ',';
	}
	if (tally_init(&s->by_group) || tally_init(&s->by_point)) {
		sums_fini(s);
		return -ENOMEM;
	}
	return 0;
}

void sums_fini(struct sums *s)
{
	filter_fini(&s->filter);
	tally_fini(&s->by_group);
	tally_fini(&s->by_point);
	buf_fini(&s->key);
	free(s->groups);
	free(s->points);
	*s = (struct sums){0};
}

/* ---- adding ---- */

/* The key of a group is its values, each with a NUL, behind a byte: it is never empty. */
static uint32_t group_of(struct sums *s, const struct fusee_profile *p,
			 const struct fusee_sample *sample, int64_t v)
{
	buf_reset(&s->key);
	buf_str(&s->key, "=");
	for (uint32_t i = 0; i < s->nkeys; i++) {
		render_label(p, sample, s->keys[i], &s->key);
		buf_add(&s->key, "", 1);
	}
	return s->key.error ? TALLY_NONE : tally_add(&s->by_group, s->key.p, s->key.len, v);
}

static int add_sample(struct sums *s, const struct fusee_profile *p, uint32_t i)
{
	const struct fusee_sample *sample = FUSEE_AT(struct fusee_sample, p->samples, i);
	int64_t v = *FUSEE_AT(int64_t, p->values, (uint64_t)i * p->types.n + s->filter.type);
	struct point_key key = {.start_ns = p->start_ns -
					    (s->step_ns ? p->start_ns % s->step_ns : 0)};

	if (!filter_takes(&s->filter, p, sample))
		return s->filter.error;
	saturate_add(&s->total, v);
	s->stacks++;
	saturate_add(&s->samples, filter_samples(&s->filter, p, i));
	key.group = group_of(s, p, sample, v);
	if (key.group == TALLY_NONE || tally_add(&s->by_point, &key, sizeof(key), v) == TALLY_NONE)
		return -ENOMEM;
	return 0;
}

static void copy(char to[64], const struct fusee_profile *p, uint32_t string)
{
	struct fusee_str s = str_at(p, string);
	size_t n = s.len < 63 ? s.len : 63;

	for (size_t i = 0; i < n; i++)
		to[i] = (unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f ? '?' : s.p[i];
	to[n] = '\0';
}

static void note_window(struct sums *s, const struct fusee_profile *p)
{
	const struct fusee_value_type *t = FUSEE_AT(struct fusee_value_type, p->types,
						    s->filter.type);

	copy(s->type, p, t->type);
	copy(s->unit, p, t->unit);
	if (!s->windows++ || p->start_ns < s->first_ns)
		s->first_ns = p->start_ns;
	if (p->start_ns > s->last_ns)
		s->last_ns = p->start_ns;
}

int sums_add(struct sums *s, const struct fusee_profile *p, const char *name, struct buf *error)
{
	uint64_t before = s->stacks;
	int r = filter_begin(&s->filter, p, name, error);

	if (r <= 0)
		return r;
	r = 0;
	for (uint32_t i = 0; !r && i < p->samples.n; i++)
		r = add_sample(s, p, i);
	if (s->filter.error)
		buf_str(error, filter_error(&s->filter));
	if (s->stacks > before)
		note_window(s, p);
	if (!r && tally_bytes(&s->by_group) + tally_bytes(&s->by_point) > SUMS_MAX_BYTES) {
		r = -EFBIG;
		buf_printf(error,
			   "the sums of all groups and windows take more than %llu MiB: "
			   "select less, or group by fewer labels",
			   SUMS_MAX_BYTES >> 20);
	}
	return r;
}

/* ---- the result ---- */

uint64_t sums_step(const struct sums *s)
{
	static const uint32_t seconds[] = {1,   2,   5,   10,   15,   30,   60,    120,
					   300, 600, 900, 1800, 3600, 7200, 21600, 43200};
	uint64_t step = SECOND;

	for (size_t i = 0; i < sizeof(seconds) / sizeof(*seconds); i++) {
		step = seconds[i] * SECOND;
		if (s->last_ns / step - s->first_ns / step < POINTS)
			return step;
	}
	for (step = 86400 * SECOND; s->last_ns / step - s->first_ns / step >= POINTS;)
		step *= 2;
	return step;
}

static int by_total(const void *a, const void *b, void *groups)
{
	const struct sums_group *x = (const struct sums_group *)groups + *(const uint32_t *)a,
				*y = (const struct sums_group *)groups + *(const uint32_t *)b;
	size_t n = x->values.len < y->values.len ? x->values.len : y->values.len;

	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return n ? memcmp(x->values.p, y->values.p, n) : 0;
}

/* Sorts the groups; place[id - 1] is the place of the group that had this id. */
static int finish_groups(struct sums *s, uint32_t *place)
{
	uint32_t n = tally_size(&s->by_group), *order = calloc(n + 1, sizeof(*order));
	struct sums_group *unsorted = calloc(n + 1, sizeof(*unsorted));
	int r = order && unsorted && s->groups ? 0 : -ENOMEM;

	for (uint32_t i = 0; !r && i < n; i++) {
		struct fusee_str key = tally_key(&s->by_group, i);

		order[i] = i;
		unsorted[i] = (struct sums_group){tally_sum(&s->by_group, i),
						  {key.p + 1, key.len - 1}};
	}
	if (!r)
		qsort_r(order, n, sizeof(*order), by_total, unsorted);
	for (uint32_t i = 0; !r && i < n; i++) {
		s->groups[i] = unsorted[order[i]];
		place[order[i]] = i;
	}
	s->ngroups = r ? 0 : n;
	free(order);
	free(unsorted);
	return r;
}

static int by_time(const void *a, const void *b)
{
	const struct sums_point *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static void finish_points(struct sums *s, const uint32_t *place, uint64_t step_ns)
{
	uint32_t n = tally_size(&s->by_point), kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct point_key *k = (const void *)tally_key(&s->by_point, i).p;

		s->points[i] = (struct sums_point){.group = place[k->group - 1],
						   .start_ns = k->start_ns - k->start_ns % step_ns,
						   .value = tally_sum(&s->by_point, i)};
	}
	qsort(s->points, n, sizeof(*s->points), by_time);
	for (uint32_t i = 0; i < n; i++) {
		if (kept && !by_time(&s->points[kept - 1], &s->points[i]))
			saturate_add(&s->points[kept - 1].value, s->points[i].value);
		else
			s->points[kept++] = s->points[i];
	}
	s->npoints = kept;
}

int sums_finish(struct sums *s, uint64_t step_ns)
{
	uint32_t *place = calloc(tally_size(&s->by_group) + 1, sizeof(*place));
	int r;

	s->groups = calloc(tally_size(&s->by_group) + 1, sizeof(*s->groups));
	s->points = calloc(tally_size(&s->by_point) + 1, sizeof(*s->points));
	r = place && s->points ? finish_groups(s, place) : -ENOMEM;
	if (!r)
		finish_points(s, place, step_ns);
	free(place);
	return r;
}

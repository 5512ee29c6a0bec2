/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/merge.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "loss/comment.h"
#include "profile/str.h"

#define UNSEEN BUILDER_NONE

struct merge {
	struct builder *b;
	const struct fusee_profile *p;
	const struct merge_choice *choice;
	/* By index in p: index in b, or UNSEEN. */
	uint32_t *functions, *mappings, *locations, *stacks;
	struct buf values;                /* of a part of a sample */
	struct buf lines, frames, labels; /* of the location, stack and sample that are added */
	uint32_t nkept;
};

static uint32_t string(struct merge *m, uint32_t i)
{
	struct fusee_str s = str_at(m->p, i);

	return builder_string(m->b, s.p, s.len);
}

/* The index in b. These functions add an element when a sample first needs it. */
static uint32_t function(struct merge *m, uint32_t i)
{
	struct fusee_function f;

	if (m->functions[i] != UNSEEN)
		return m->functions[i];
	f = *FUSEE_AT(struct fusee_function, m->p->functions, i);
	f.name = string(m, f.name);
	f.system_name = string(m, f.system_name);
	f.file = string(m, f.file);
	return m->functions[i] = builder_function(m->b, &f);
}

static uint32_t mapping(struct merge *m, uint32_t i)
{
	struct fusee_mapping to;

	if (m->mappings[i] != UNSEEN)
		return m->mappings[i];
	to = *FUSEE_AT(struct fusee_mapping, m->p->mappings, i);
	to.path = string(m, to.path);
	to.build_id = string(m, to.build_id);
	return m->mappings[i] = builder_mapping(m->b, &to);
}

static uint32_t location(struct merge *m, uint32_t i)
{
	struct fusee_location l;
	struct fusee_line *lines;

	if (m->locations[i] != UNSEEN)
		return m->locations[i];
	l = *FUSEE_AT(struct fusee_location, m->p->locations, i);
	buf_reset(&m->lines);
	lines = buf_grow(&m->lines, l.nlines * sizeof(*lines));
	if (!lines && l.nlines)
		return UNSEEN;
	for (uint32_t k = 0; k < l.nlines; k++) {
		lines[k] = *FUSEE_AT(struct fusee_line, m->p->lines, l.first_line + k);
		lines[k].function = function(m, lines[k].function);
	}
	l.mapping = mapping(m, l.mapping);
	l.frame_type = string(m, l.frame_type);
	l.language = string(m, l.language);
	return m->locations[i] = builder_location(m->b, &l, lines, l.nlines);
}

static uint32_t stack(struct merge *m, uint32_t i)
{
	const struct fusee_stack *s = FUSEE_AT(struct fusee_stack, m->p->stacks, i);
	uint32_t *at;

	if (m->stacks[i] != UNSEEN)
		return m->stacks[i];
	buf_reset(&m->frames);
	at = buf_grow(&m->frames, s->n * sizeof(*at));
	if (!at && s->n)
		return UNSEEN;
	for (uint32_t k = 0; k < s->n; k++)
		at[k] = location(m, *FUSEE_AT(uint32_t, m->p->stack_locations, s->first + k));
	return m->stacks[i] = builder_stack(m->b, at, s->n);
}

static bool is_chosen(const struct merge_choice *c, struct fusee_str key)
{
	for (uint32_t i = 0; i < c->nlabels; i++)
		if (str_equal(c->labels[i], key))
			return true;
	return !c->only_labels;
}

/* The sample's labels that are chosen, in m->labels. Their number; UINT32_MAX: no memory. */
static uint32_t labels(struct merge *m, const struct fusee_sample *s)
{
	uint32_t n = 0;

	buf_reset(&m->labels);
	for (uint32_t i = 0; i < s->nlabels; i++) {
		const struct fusee_label *l = FUSEE_AT(struct fusee_label, m->p->labels,
						       s->first_label + i);

		if (!is_chosen(m->choice, l->key))
			continue;
		if (buf_add(&m->labels, l, sizeof(*l)))
			return UINT32_MAX;
		n++;
	}
	return n;
}

/* The sample's times that are chosen: n from first on. Its times are in order. */
struct chosen_times {
	uint64_t first;
	uint32_t n;
};

static uint64_t time_at(const struct fusee_profile *p, uint64_t i)
{
	return *FUSEE_AT(uint64_t, p->times, i);
}

static struct chosen_times times(const struct merge *m, const struct fusee_sample *s)
{
	struct chosen_times t = {s->first_time, s->ntimes};
	const struct merge_choice *c = m->choice;

	while (c->to_ns && t.n && time_at(m->p, t.first) < c->from_ns) {
		t.first++;
		t.n--;
	}
	while (c->to_ns && t.n && time_at(m->p, t.first + t.n - 1) >= c->to_ns)
		t.n--;
	return t;
}

/* Adds a sample that is in `b` as stack `at`, with the values of n of its ntimes times. */
static int add_part(struct merge *m, const struct fusee_sample *s, uint32_t at, uint32_t nlabels,
		    const int64_t *from, struct chosen_times t)
{
	bool pid = is_chosen(m->choice, fusee_text("pid")),
	     tid = is_chosen(m->choice, fusee_text("tid"));
	uint32_t ntypes = m->p->types.n;
	const int64_t *values = from;
	int r;

	if (t.n < s->ntimes) {
		int64_t *part;

		buf_reset(&m->values);
		part = buf_grow(&m->values, ntypes * sizeof(*part));
		if (!part)
			return -ENOMEM;
		for (uint32_t i = 0; i < ntypes; i++)
			part[i] = (int64_t)((__int128)from[i] * t.n / s->ntimes);
		values = part;
	}
	if (is_chosen(m->choice, fusee_text("trace_id")))
		builder_ids(m->b, s->trace_id, s->span_id);
	r = builder_sample(m->b, at, (const struct fusee_label *)(const void *)m->labels.p, nlabels,
			   pid ? s->pid : 0, tid ? s->tid : 0, values);
	builder_ids(m->b, (const uint64_t[2]){0}, 0);
	for (uint32_t i = 0; !r && i < t.n; i++)
		r = builder_time(m->b, time_at(m->p, t.first + i));
	return r;
}

static int merge_sample(struct merge *m, uint32_t i)
{
	const struct fusee_sample *s = FUSEE_AT(struct fusee_sample, m->p->samples, i);
	const struct merge_choice *c = m->choice;
	struct chosen_times t = times(m, s);
	uint32_t nlabels, at;

	if ((c->to_ns && !t.n) || (c->keep && !c->keep(c->arg, m->p, s)))
		return 0;
	m->nkept++;
	at = stack(m, s->stack);
	nlabels = labels(m, s);
	if (nlabels == UINT32_MAX || m->lines.error || m->frames.error)
		return -ENOMEM;
	return add_part(m, s, at, nlabels,
			FUSEE_AT(int64_t, m->p->values, (uint64_t)i * m->p->types.n), t);
}

static bool same_types(const struct fusee_profile *a, const struct fusee_profile *b)
{
	if (a->types.n != b->types.n)
		return false;
	for (uint32_t i = 0; i < a->types.n; i++) {
		const struct fusee_value_type *x = FUSEE_AT(struct fusee_value_type, a->types, i);
		const struct fusee_value_type *y = FUSEE_AT(struct fusee_value_type, b->types, i);

		if (!str_equal(str_at(a, x->type), str_at(b, y->type)) ||
		    !str_equal(str_at(a, x->unit), str_at(b, y->unit)))
			return false;
	}
	return true;
}

int merge_begin(struct builder *b, const struct fusee_profile *p)
{
	struct fusee_profile *to = builder_profile(b);
	struct merge m = {.b = b, .p = p};

	for (uint32_t i = 0; i < p->types.n; i++) {
		const struct fusee_value_type *t = FUSEE_AT(struct fusee_value_type, p->types, i);
		char *type = strndup(str_at(p, t->type).p, str_at(p, t->type).len);
		char *unit = strndup(str_at(p, t->unit).p, str_at(p, t->unit).len);

		if (type && unit)
			builder_type(b, type, unit);
		free(type);
		free(unit);
		if (!type || !unit)
			return -ENOMEM;
	}
	to->kind = string(&m, p->kind);
	to->default_type = p->default_type;
	to->period_type = string(&m, p->period_type);
	to->period_unit = string(&m, p->period_unit);
	to->period = p->period;
	return 0;
}

static void merge_rest(struct merge *m)
{
	for (uint32_t i = 0; i < m->p->losses.n; i++) {
		const struct fusee_label *l = FUSEE_AT(struct fusee_label, m->p->losses, i);
		char *reason = strndup(l->key.p, l->key.len);

		if (reason)
			builder_loss(m->b, loss_stage_of(l), reason, l->num);
		free(reason);
	}
	for (uint32_t i = 0; i < m->p->comments.n; i++) {
		const struct fusee_str *c = FUSEE_AT(struct fusee_str, m->p->comments, i);

		builder_comment(m->b, "%.*s", (int)c->len, c->p);
	}
}

static uint32_t *unseen(uint32_t n)
{
	uint32_t *p = malloc((n + 1ull) * sizeof(*p));

	if (p)
		memset(p, 0xff, (n + 1ull) * sizeof(*p));
	return p;
}

/* The time that the samples are of. */
static void add_span(const struct merge *m, struct fusee_profile *to)
{
	uint64_t start = m->p->start_ns, end = start + m->p->duration_ns;

	if (m->choice->to_ns) {
		start = start > m->choice->from_ns ? start : m->choice->from_ns;
		end = end < m->choice->to_ns ? end : m->choice->to_ns;
	}
	to->duration_ns += end > start ? end - start : 0;
	if (!to->start_ns || start < to->start_ns)
		to->start_ns = start;
}

static int add_samples(struct merge *m)
{
	struct fusee_profile *to = builder_profile(m->b);
	int r = 0;

	for (uint32_t i = 0; !r && i < m->p->samples.n; i++)
		r = merge_sample(m, i);
	if (r || (!m->nkept && m->choice->keep))
		return r;
	for (uint32_t i = 1; i < m->p->mappings.n; i++) /* also mappings without a frame */
		if (FUSEE_AT(struct fusee_mapping, m->p->mappings, i)->flags & FUSEE_MAPPING_MAIN)
			mapping(m, i);
	add_span(m, to);
	merge_rest(m);
	return 0;
}

int merge_add(struct builder *b, const struct fusee_profile *p, const struct merge_choice *choice,
	      uint32_t *nkept)
{
	static const struct merge_choice all;
	struct merge m = {.b = b, .p = p, .choice = choice ? choice : &all};
	int r;

	m.functions = unseen(p->functions.n);
	m.mappings = unseen(p->mappings.n);
	m.locations = unseen(p->locations.n);
	m.stacks = unseen(p->stacks.n);
	r = m.functions && m.mappings && m.locations && m.stacks ? add_samples(&m) : -ENOMEM;
	if (nkept)
		*nkept = m.nkept;
	free(m.functions);
	free(m.mappings);
	free(m.locations);
	free(m.stacks);
	buf_fini(&m.lines);
	buf_fini(&m.frames);
	buf_fini(&m.labels);
	buf_fini(&m.values);
	return r;
}

int merge_profiles(struct builder *b, const struct fusee_profile *const *profiles, uint32_t n,
		   uint32_t *odd)
{
	int r = merge_begin(b, profiles[0]);

	for (*odd = 1; !r && *odd < n; ++*odd)
		if (!same_types(profiles[0], profiles[*odd]))
			return -EINVAL;
	for (uint32_t i = 0; !r && i < n; i++)
		r = merge_add(b, profiles[i], NULL, NULL);
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/merge.h"
#include "profile/pprof_loss.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct merge {
	struct builder *b;
	const struct fusee_profile *p;
	uint32_t *functions, *mappings, *locations, *stacks; /* by index in p: index in b */
};

static struct fusee_str text(const struct fusee_profile *p, uint32_t i)
{
	return *FUSEE_AT(struct fusee_str, p->strings, i);
}

static uint32_t string(struct merge *m, uint32_t i)
{
	struct fusee_str s = text(m->p, i);

	return builder_string(m->b, s.p, s.len);
}

static void merge_functions(struct merge *m)
{
	for (uint32_t i = 1; i < m->p->functions.n; i++) {
		struct fusee_function f = *FUSEE_AT(struct fusee_function, m->p->functions, i);

		f.name = string(m, f.name);
		f.system_name = string(m, f.system_name);
		f.file = string(m, f.file);
		m->functions[i] = builder_function(m->b, &f);
	}
}

static void merge_mappings(struct merge *m)
{
	for (uint32_t i = 1; i < m->p->mappings.n; i++) {
		struct fusee_mapping to = *FUSEE_AT(struct fusee_mapping, m->p->mappings, i);

		to.path = string(m, to.path);
		to.build_id = string(m, to.build_id);
		m->mappings[i] = builder_mapping(m->b, &to);
	}
}

static int merge_locations(struct merge *m)
{
	for (uint32_t i = 1; i < m->p->locations.n; i++) {
		struct fusee_location l = *FUSEE_AT(struct fusee_location, m->p->locations, i);
		struct fusee_line *lines = calloc(l.nlines + 1, sizeof(*lines));

		if (!lines)
			return -ENOMEM;
		for (uint32_t k = 0; k < l.nlines; k++) {
			lines[k] = *FUSEE_AT(struct fusee_line, m->p->lines, l.first_line + k);
			lines[k].function = m->functions[lines[k].function];
		}
		l.mapping = m->mappings[l.mapping];
		l.frame_type = string(m, l.frame_type);
		l.language = string(m, l.language);
		m->locations[i] = builder_location(m->b, &l, lines, l.nlines);
		free(lines);
	}
	return 0;
}

static int merge_stacks(struct merge *m)
{
	for (uint32_t i = 1; i < m->p->stacks.n; i++) {
		const struct fusee_stack *s = FUSEE_AT(struct fusee_stack, m->p->stacks, i);
		uint32_t *at = calloc(s->n + 1, sizeof(*at));

		if (!at)
			return -ENOMEM;
		for (uint32_t k = 0; k < s->n; k++)
			at[k] = m->locations[*FUSEE_AT(uint32_t, m->p->stack_locations,
						       s->first + k)];
		m->stacks[i] = builder_stack(m->b, at, s->n);
		free(at);
	}
	return 0;
}

static int merge_samples(struct merge *m)
{
	int r = 0;

	for (uint32_t i = 0; !r && i < m->p->samples.n; i++) {
		const struct fusee_sample *s = FUSEE_AT(struct fusee_sample, m->p->samples, i);

		r = builder_sample(
			m->b, m->stacks[s->stack],
			s->nlabels ? FUSEE_AT(struct fusee_label, m->p->labels, s->first_label)
				   : NULL,
			s->nlabels, s->pid, s->tid,
			FUSEE_AT(int64_t, m->p->values, (uint64_t)i * m->p->types.n));
	}
	return r;
}

static bool same(struct fusee_str a, struct fusee_str b)
{
	return a.len == b.len && (!a.len || !memcmp(a.p, b.p, a.len));
}

static bool same_types(const struct fusee_profile *a, const struct fusee_profile *b)
{
	if (a->types.n != b->types.n)
		return false;
	for (uint32_t i = 0; i < a->types.n; i++) {
		const struct fusee_value_type *x = FUSEE_AT(struct fusee_value_type, a->types, i);
		const struct fusee_value_type *y = FUSEE_AT(struct fusee_value_type, b->types, i);

		if (!same(text(a, x->type), text(b, y->type)) ||
		    !same(text(a, x->unit), text(b, y->unit)))
			return false;
	}
	return true;
}

/* What the merged profile has of the first profile. */
static int merge_head(struct builder *b, const struct fusee_profile *p)
{
	struct fusee_profile *to = builder_profile(b);
	struct merge m = {.b = b, .p = p};

	for (uint32_t i = 0; i < p->types.n; i++) {
		const struct fusee_value_type *t = FUSEE_AT(struct fusee_value_type, p->types, i);
		char *type = strndup(text(p, t->type).p, text(p, t->type).len);
		char *unit = strndup(text(p, t->unit).p, text(p, t->unit).len);

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
	to->start_ns = p->start_ns;
	return 0;
}

static void merge_rest(struct merge *m)
{
	for (uint32_t i = 0; i < m->p->losses.n; i++) {
		const struct fusee_label *l = FUSEE_AT(struct fusee_label, m->p->losses, i);
		char *reason = strndup(l->key.p, l->key.len);

		if (reason)
			builder_loss(m->b, pprof_loss_stage(l), reason, l->num);
		free(reason);
	}
	for (uint32_t i = 0; i < m->p->comments.n; i++) {
		const struct fusee_str *c = FUSEE_AT(struct fusee_str, m->p->comments, i);

		builder_comment(m->b, "%.*s", (int)c->len, c->p);
	}
}

static int add_profile(struct builder *b, const struct fusee_profile *p)
{
	struct merge m = {.b = b, .p = p};
	int r;

	builder_profile(b)->duration_ns += p->duration_ns;
	m.functions = calloc(p->functions.n + 1, sizeof(uint32_t));
	m.mappings = calloc(p->mappings.n + 1, sizeof(uint32_t));
	m.locations = calloc(p->locations.n + 1, sizeof(uint32_t));
	m.stacks = calloc(p->stacks.n + 1, sizeof(uint32_t));
	r = m.functions && m.mappings && m.locations && m.stacks ? 0 : -ENOMEM;
	if (r)
		goto out;
	merge_functions(&m);
	merge_mappings(&m);
	r = merge_locations(&m);
	if (!r)
		r = merge_stacks(&m);
	if (!r)
		r = merge_samples(&m);
	if (!r)
		merge_rest(&m);
out:
	free(m.functions);
	free(m.mappings);
	free(m.locations);
	free(m.stacks);
	return r;
}

int merge_profiles(struct builder *b, const struct fusee_profile *const *profiles, uint32_t n,
		   uint32_t *odd)
{
	int r = merge_head(b, profiles[0]);

	for (*odd = 1; !r && *odd < n; ++*odd)
		if (!same_types(profiles[0], profiles[*odd]))
			return -EINVAL;
	for (uint32_t i = 0; !r && i < n; i++)
		r = add_profile(b, profiles[i]);
	return r;
}

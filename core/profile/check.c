/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/check.h"

static bool within(uint64_t first, uint64_t n, struct fusee_table t)
{
	return first <= t.n && n <= t.n - first;
}

static bool check_names(const struct fusee_profile *p)
{
	uint32_t n = p->strings.n;
	bool ok = n && p->mappings.n && p->functions.n && p->locations.n && p->stacks.n;

	ok = ok && p->kind < n && p->period_type < n && p->period_unit < n;
	ok = ok && (uint64_t)p->samples.n * p->types.n <= p->values.n &&
	     (!p->samples.n || p->types.n);
	for (uint32_t i = 0; ok && i < p->types.n; i++) {
		const struct fusee_value_type *t = FUSEE_AT(struct fusee_value_type, p->types, i);

		ok = t->type < n && t->unit < n;
	}
	for (uint32_t i = 0; ok && i < p->functions.n; i++) {
		const struct fusee_function *f = FUSEE_AT(struct fusee_function, p->functions, i);

		ok = f->name < n && f->system_name < n && f->file < n;
	}
	for (uint32_t i = 0; ok && i < p->mappings.n; i++) {
		const struct fusee_mapping *m = FUSEE_AT(struct fusee_mapping, p->mappings, i);

		ok = m->path < n && m->build_id < n;
	}
	return ok;
}

static bool check_indices(const struct fusee_profile *p)
{
	bool ok = true;

	for (uint32_t i = 0; ok && i < p->lines.n; i++)
		ok = FUSEE_AT(struct fusee_line, p->lines, i)->function < p->functions.n;
	for (uint32_t i = 0; ok && i < p->locations.n; i++) {
		const struct fusee_location *l = FUSEE_AT(struct fusee_location, p->locations, i);

		ok = l->mapping < p->mappings.n && l->frame_type < p->strings.n &&
		     l->language < p->strings.n && within(l->first_line, l->nlines, p->lines);
	}
	for (uint32_t i = 0; ok && i < p->stack_locations.n; i++)
		ok = *FUSEE_AT(uint32_t, p->stack_locations, i) < p->locations.n;
	for (uint32_t i = 0; ok && i < p->stacks.n; i++) {
		const struct fusee_stack *s = FUSEE_AT(struct fusee_stack, p->stacks, i);

		ok = within(s->first, s->n, p->stack_locations);
	}
	for (uint32_t i = 0; ok && i < p->samples.n; i++) {
		const struct fusee_sample *s = FUSEE_AT(struct fusee_sample, p->samples, i);

		ok = s->stack < p->stacks.n && within(s->first_label, s->nlabels, p->labels) &&
		     (!s->ntimes || within(s->first_time, s->ntimes, p->times));
	}
	return ok;
}

bool profile_check(const struct fusee_profile *p)
{
	return check_names(p) && check_indices(p);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "query/functions.h"

#include <errno.h>

#include "profile/str.h"
#include "report/model.h"

int functions_init(struct functions *f, const char *regex, struct buf *error)
{
	int r;

	*f = (struct functions){0};
	r = render_compile(&f->regex, "--function: ", regex, error);
	if (r)
		return r;
	r = dict_init(&f->names);
	if (!r)
		r = buf_add(&f->results,
			    render_matches(&f->regex, (struct fusee_str){"", 0}) ? "\1" : "", 1);
	if (r)
		functions_fini(f);
	return r;
}

void functions_fini(struct functions *f)
{
	regfree(&f->regex);
	dict_fini(&f->names);
	buf_fini(&f->results);
	buf_fini(&f->matched);
}

/* The id of a name; computes its result if the name is new. */
static uint32_t find_name(struct functions *f, struct fusee_str name)
{
	uint32_t id = dict_add(&f->names, name.p, name.len);

	if (id != DICT_NONE && id == f->results.len)
		buf_add(&f->results, render_matches(&f->regex, name) ? "\1" : "", 1);
	return f->results.error ? DICT_NONE : id;
}

int functions_match(struct functions *f, struct fusee_str name)
{
	uint32_t id = find_name(f, name);

	return id == DICT_NONE ? -ENOMEM : f->results.p[id];
}

int functions_begin(struct functions *f, const struct fusee_profile *p)
{
	buf_reset(&f->matched);
	for (uint32_t i = 0; i < p->functions.n; i++) {
		const struct fusee_function *fn = FUSEE_AT(struct fusee_function, p->functions, i);
		struct fusee_str name = str_at(p, fn->name);
		uint32_t id = find_name(f, name);

		if (id == DICT_NONE || buf_add(&f->matched, &f->results.p[id], 1))
			return -ENOMEM;
	}
	return 0;
}

static bool location_has(const struct functions *f, const struct fusee_profile *p, uint32_t i)
{
	const struct fusee_location *l = FUSEE_AT(struct fusee_location, p->locations, i);

	for (uint32_t k = 0; k < l->nlines; k++)
		if (f->matched
			    .p[FUSEE_AT(struct fusee_line, p->lines, l->first_line + k)->function])
			return true;
	return false;
}

bool functions_has(const struct functions *f, const struct fusee_profile *p, uint32_t stack)
{
	const struct fusee_stack *s = FUSEE_AT(struct fusee_stack, p->stacks, stack);

	for (uint32_t i = 0; i < s->n; i++)
		if (location_has(f, p, *FUSEE_AT(uint32_t, p->stack_locations, s->first + i)))
			return true;
	return false;
}

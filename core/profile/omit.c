/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/omit.h"

#include <string.h>

bool omit_is_language(const struct fusee_location *l)
{
	return !l->mapping && l->nlines && !(l->flags & FUSEE_LOCATION_REASON);
}

static bool has(const struct omit *o, uint32_t language)
{
	for (uint32_t i = 0; i < o->n; i++)
		if (o->language[i] == language)
			return true;
	return false;
}

void omit_init(struct omit *o, const struct fusee_profile *p, const struct fusee_stack *s)
{
	*o = (struct omit){0};
	for (uint32_t k = 0; k < s->n; k++) {
		uint32_t at = *FUSEE_AT(uint32_t, p->stack_locations, s->first + k);
		const struct fusee_location *l = FUSEE_AT(struct fusee_location, p->locations, at);

		if (!omit_is_language(l) || has(o, l->frame_type))
			continue;
		if (l->frame_type && o->n < OMIT_LANGUAGES)
			o->language[o->n++] = l->frame_type;
		else
			o->any = true;
	}
}

bool omit_location(const struct omit *o, const struct fusee_location *l)
{
	if (!(l->flags & FUSEE_LOCATION_INTERPRETER))
		return false;
	return o->any || (l->language ? has(o, l->language) : o->n > 0);
}

bool omit_allocators(struct fusee_str type)
{
	static const char *const types[] = {"alloc_", "inuse_"};

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (type.len > strlen(types[i]) && !memcmp(type.p, types[i], strlen(types[i])))
			return true;
	return false;
}

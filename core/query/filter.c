/* SPDX-License-Identifier: Apache-2.0 */
#include "query/internal/filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/str.h"
#include "report/model.h"

static void put_types(const struct fusee_profile *p, struct buf *to)
{
	for (uint32_t i = 0; i < p->types.n; i++) {
		const struct fusee_value_type *t = FUSEE_AT(struct fusee_value_type, p->types, i);

		buf_str(to, i ? ", " : "");
		render_plain(to, str_at(p, t->type));
		buf_str(to, "/");
		render_plain(to, str_at(p, t->unit));
	}
}

static bool find_count(const struct fusee_profile *p, uint32_t *index)
{
	for (uint32_t i = 0; i < p->types.n; i++) {
		const struct fusee_value_type *t = FUSEE_AT(struct fusee_value_type, p->types, i);

		if (fusee_text_is(str_at(p, t->type), "samples") &&
		    fusee_text_is(str_at(p, t->unit), "count")) {
			*index = i;
			return true;
		}
	}
	return false;
}

static int other_types(const struct filter *s, const struct buf *types, const char *name,
		       struct buf *error)
{
	buf_printf(error, "'%s' has %.*s, '%s' has %.*s: they cannot be added up", s->first,
		   (int)s->types.len, s->types.p, name, (int)types->len, types->p);
	buf_str(error, selector_type(s->selector)
			       ? "; select them by their labels"
			       : "; name one type before the brace, as in cpu{}");
	return -EINVAL;
}

bool filter_takes(void *arg, const struct fusee_profile *p, const struct fusee_sample *sample)
{
	struct filter *s = arg;
	int r = s->error ? s->error : selector_matches(s->selector, p, sample);

	if (r < 0) {
		s->error = r;
		return false;
	}
	return r && (!s->functions || functions_has(s->functions, p, sample->stack)) &&
	       (!s->also || s->also(s->also_arg, p, sample));
}

static bool takes_any(struct filter *s, const struct fusee_profile *p)
{
	for (uint32_t i = 0; i < p->samples.n; i++)
		if (filter_takes(s, p, FUSEE_AT(struct fusee_sample, p->samples, i)))
			return true;
	return false;
}

/* All windows use the type index and the types of the first window. Equal types can still have
 * different defaults, and equal texts different numbers of types. */
static int same_types(struct filter *s, const struct fusee_profile *p, uint32_t type,
		      const char *name, struct buf *error)
{
	struct buf types = {0};
	int r = 1;

	put_types(p, &types);
	if (types.error) {
		r = types.error;
	} else if (!s->first) {
		s->first = strdup(name);
		s->type = type;
		s->ntypes = p->types.n;
		s->counts = find_count(p, &s->count);
		s->types = types;
		types = (struct buf){0};
		r = s->first ? 1 : -ENOMEM;
	} else if (p->types.n != s->ntypes || types.len != s->types.len ||
		   memcmp(types.p, s->types.p, types.len)) {
		r = other_types(s, &types, name, error);
	}
	buf_fini(&types);
	return r;
}

int filter_begin(struct filter *s, const struct fusee_profile *p, const char *name,
		 struct buf *error)
{
	const char *required = selector_type(s->selector);
	uint32_t type = p->default_type < p->types.n ? p->default_type : p->types.n - 1;

	if (!p->types.n || (required && !render_find_type(p, fusee_text(required), NULL, &type)))
		return 0;
	if (s->functions && functions_begin(s->functions, p))
		return -ENOMEM;
	if (takes_any(s, p))
		return same_types(s, p, type, name, error);
	if (s->error)
		buf_str(error, filter_error(s));
	return s->error;
}

int64_t filter_samples(const struct filter *s, const struct fusee_profile *p, uint32_t i)
{
	int64_t n = 1;

	if (s->counts)
		n = *FUSEE_AT(int64_t, p->values, (uint64_t)i * p->types.n + s->count);
	return n > 0 ? n : 0;
}

const char *filter_error(const struct filter *s)
{
	return s->error == -EAGAIN ? "an expression of the selector takes too long to match a label"
				   : strerror(-s->error);
}

void filter_fini(struct filter *s)
{
	free(s->first);
	buf_fini(&s->types);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "report/labels.h"
#include "query/internal/selector_state.h"

void selector_free(struct selector *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->n; i++) {
		free(s->conditions[i].key);
		free(s->conditions[i].value);
		regex_free(s->conditions[i].regex);
		buf_fini(&s->conditions[i].last);
	}
	free(s->type);
	buf_fini(&s->value);
	free(s);
}

const char *selector_type(const struct selector *s)
{
	return s->type;
}

static int compare(const struct condition *c, struct fusee_str value)
{
	int r;

	if (!c->regex)
		return (value.len == c->value_len &&
			!memcmp(value.p ? value.p : "", c->value, value.len)) != c->negated;
	r = regex_match(c->regex, value, NULL);
	return r < 0 ? r : (r == 1) != c->negated;
}

static int is_met(struct condition *c, struct fusee_str value)
{
	if (c->has_last && c->last.len == value.len &&
	    (!value.len || !memcmp(c->last.p, value.p, value.len)))
		return c->result;
	buf_reset(&c->last);
	c->has_last = !buf_add(&c->last, value.p, value.len);
	c->result = compare(c, value);
	return c->result;
}

int selector_matches(struct selector *s, const struct fusee_profile *p,
		     const struct fusee_sample *sample)
{
	int r = 1;

	for (uint32_t i = 0; r == 1 && i < s->n; i++) {
		struct condition *c = &s->conditions[i];

		buf_reset(&s->value);
		render_label(p, sample, fusee_text(c->key), &s->value);
		r = s->value.error ? s->value.error
				   : is_met(c, (struct fusee_str){s->value.p, s->value.len});
	}
	return r;
}

int selector_may_match(struct selector *s, const struct fusee_label *labels, uint32_t n)
{
	int r = 1;

	for (uint32_t i = 0; r == 1 && i < s->n; i++) {
		struct condition *c = &s->conditions[i];

		for (uint32_t k = 0; r == 1 && k < n; k++)
			if (fusee_text_is(labels[k].key, c->key))
				r = is_met(c, labels[k].str);
	}
	return r;
}

bool selector_requires(const struct selector *s, uint32_t i, const char **key, const char **text)
{
	for (uint32_t k = 0; k < s->n; k++) {
		const struct condition *c = &s->conditions[k];

		if (c->regex || c->negated || !c->value_len || strlen(c->value) != c->value_len ||
		    i--)
			continue;
		*key = c->key;
		*text = c->value;
		return true;
	}
	return false;
}

bool selector_has(const struct selector *s, struct fusee_str key)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (fusee_text_is(key, s->conditions[i].key))
			return true;
	return false;
}

int selector_may_match_between(struct selector *s, struct fusee_str key, struct fusee_str min,
			       struct fusee_str max)
{
	bool exact = !str_order(min, max);
	int r = 1;

	for (uint32_t i = 0; r == 1 && i < s->n; i++) {
		struct condition *c = &s->conditions[i];
		struct fusee_str value = {c->value, c->value_len};

		if (!fusee_text_is(key, c->key))
			continue;
		if (exact)
			r = is_met(c, min);
		else if (!c->regex && !c->negated)
			r = str_order(value, min) >= 0 && str_order(value, max) <= 0;
	}
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "internal.h"

/* FNV-1a, of lengths too: {"ab", "c"} is not {"a", "bc"}. */
static uint64_t hash_text(uint64_t h, struct fusee_str s)
{
	for (uint64_t i = 0; i < s.len; i++)
		h = (h ^ (uint8_t)s.p[i]) * 0x100000001b3ull;
	return (h ^ s.len) * 0x100000001b3ull;
}

static uint64_t hash(const struct labels *l)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (uint32_t i = 0; i < l->n; i++)
		h = hash_text(hash_text(h, l->at[i].key), l->at[i].str);
	return h;
}

static bool equal(const struct labels *a, const struct labels *b)
{
	if (a->n != b->n)
		return false;
	for (uint32_t i = 0; i < a->n; i++)
		if (!fusee_text_same(a->at[i].key, b->at[i].key) ||
		    !fusee_text_same(a->at[i].str, b->at[i].str))
			return false;
	return true;
}

static int copy(struct labels *to, const struct labels *from)
{
	*to = (struct labels){.n = from->n, .dropped = from->dropped};
	to->at = malloc((from->n + 1) * sizeof(*to->at));
	fusee_bytes_add(&to->text, from->text.p, from->text.len);
	if (!to->at || to->text.error) {
		labels_fini(to);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < from->n; i++) {
		to->at[i] = from->at[i];
		to->at[i].key.p = to->text.p + (from->at[i].key.p - from->text.p);
		to->at[i].str.p = to->text.p + (from->at[i].str.p - from->text.p);
	}
	return 0;
}

static int grow(struct sets *s)
{
	uint32_t cap = s->cap ? 2 * s->cap : 16, nslots = 4 * cap;
	struct labels *at = realloc(s->at, cap * sizeof(*at));
	uint64_t *hashes = at ? realloc(s->hashes, cap * sizeof(*hashes)) : NULL;
	uint32_t *slots = hashes ? calloc(nslots, sizeof(*slots)) : NULL;

	s->at = at ? at : s->at;
	s->hashes = hashes ? hashes : s->hashes;
	if (!slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n; i++) {
		uint32_t k = (uint32_t)hashes[i] & (nslots - 1);

		while (slots[k])
			k = (k + 1) & (nslots - 1);
		slots[k] = i + 1;
	}
	free(s->slots);
	s->slots = slots;
	s->nslots = nslots;
	s->cap = cap;
	return 0;
}

int64_t sets_put(struct sets *s, const struct labels *l)
{
	uint64_t h = hash(l);
	uint32_t k;

	if (s->n == s->cap && grow(s))
		return -ENOMEM;
	for (k = (uint32_t)h & (s->nslots - 1); s->slots[k]; k = (k + 1) & (s->nslots - 1))
		if (s->hashes[s->slots[k] - 1] == h && equal(&s->at[s->slots[k] - 1], l))
			return s->slots[k] - 1;
	if (copy(&s->at[s->n], l))
		return -ENOMEM;
	s->hashes[s->n] = h;
	s->slots[k] = ++s->n;
	return s->n - 1;
}

void sets_fini(struct sets *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		labels_fini(&s->at[i]);
	free(s->at);
	free(s->hashes);
	free(s->slots);
	*s = (struct sets){0};
}

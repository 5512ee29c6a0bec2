/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hashmap.h"

#include <errno.h>
#include <stdlib.h>

static uint64_t home(const struct hashmap *t, uint64_t key)
{
	key *= 0x9e3779b97f4a7c15u; /* 2^64 / golden ratio: spreads neighbours */
	return (key ^ key >> 32) & (t->nslots - 1);
}

static struct hashmap_slot *find(const struct hashmap *t, uint64_t key)
{
	uint64_t i = home(t, key);

	while (t->slots[i].value && t->slots[i].key != key)
		i = (i + 1) & (t->nslots - 1);
	return &t->slots[i];
}

void hashmap_fini(struct hashmap *t)
{
	free(t->slots);
	*t = (struct hashmap){0};
}

void hashmap_fini_free(struct hashmap *t)
{
	for (uint64_t i = 0; i < t->nslots; i++)
		free(t->slots[i].value);
	hashmap_fini(t);
}

void *hashmap_get(const struct hashmap *t, uint64_t key)
{
	return t->nslots ? find(t, key)->value : NULL;
}

static int grow(struct hashmap *t)
{
	struct hashmap bigger = {.nslots = t->nslots ? t->nslots * 2 : 64};

	bigger.slots = calloc(bigger.nslots, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (uint64_t i = 0; i < t->nslots; i++)
		if (t->slots[i].value)
			*find(&bigger, t->slots[i].key) = t->slots[i];
	bigger.n = t->n;
	free(t->slots);
	*t = bigger;
	return 0;
}

int hashmap_put(struct hashmap *t, uint64_t key, void *value)
{
	struct hashmap_slot *s;

	if (t->n + t->n / 2 >= t->nslots && grow(t))
		return -ENOMEM;
	s = find(t, key);
	if (!s->value)
		t->n++;
	*s = (struct hashmap_slot){key, value};
	return 0;
}

void *hashmap_del(struct hashmap *t, uint64_t key)
{
	uint64_t gap, i, mask = t->nslots - 1;
	struct hashmap_slot *s;
	void *value;

	if (!t->nslots)
		return NULL;
	s = find(t, key);
	value = s->value;
	if (!value)
		return NULL;
	/* Close the gap: whoever probed past it on the way to its place moves up. */
	gap = (uint64_t)(s - t->slots);
	for (i = (gap + 1) & mask; t->slots[i].value; i = (i + 1) & mask) {
		uint64_t h = home(t, t->slots[i].key);

		if (((i - h) & mask) >= ((i - gap) & mask)) {
			t->slots[gap] = t->slots[i];
			gap = i;
		}
	}
	t->slots[gap] = (struct hashmap_slot){0};
	t->n--;
	return value;
}

void hashmap_each(const struct hashmap *t, void (*each)(void *, uint64_t, void *), void *arg)
{
	for (uint64_t i = 0; i < t->nslots; i++)
		if (t->slots[i].value)
			each(arg, t->slots[i].key, t->slots[i].value);
}

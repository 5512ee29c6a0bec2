/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hashmap.h"

#include <errno.h>
#include <stdlib.h>

#include "base/assert.h"

static uint64_t home(const struct hashmap *map, uint64_t key)
{
	key *= 0x9e3779b97f4a7c15u; /* 2^64 / golden ratio: spreads neighbours */
	return (key ^ key >> 32) & (map->nslots - 1);
}

static struct hashmap_slot *find(const struct hashmap *map, uint64_t key)
{
	uint64_t i = home(map, key);

	while (map->slots[i].value && map->slots[i].key != key)
		i = (i + 1) & (map->nslots - 1);
	return &map->slots[i];
}

void hashmap_fini(struct hashmap *map)
{
	free(map->slots);
	*map = (struct hashmap){0};
}

void hashmap_fini_free(struct hashmap *map)
{
	for (uint64_t i = 0; i < map->nslots; i++)
		free(map->slots[i].value);
	hashmap_fini(map);
}

void *hashmap_get(const struct hashmap *map, uint64_t key)
{
	return map->nslots ? find(map, key)->value : NULL;
}

#define MIN_SLOTS 64u

static int resize(struct hashmap *map, uint64_t nslots)
{
	struct hashmap other = {.nslots = nslots};

	other.slots = calloc(nslots, sizeof(*other.slots));
	if (!other.slots)
		return -ENOMEM;
	for (uint64_t i = 0; i < map->nslots; i++)
		if (map->slots[i].value)
			*find(&other, map->slots[i].key) = map->slots[i];
	other.n = map->n;
	free(map->slots);
	*map = other;
	return 0;
}

static int grow(struct hashmap *map)
{
	return resize(map, map->nslots ? map->nslots * 2 : MIN_SLOTS);
}

int hashmap_put(struct hashmap *map, uint64_t key, void *value)
{
	struct hashmap_slot *s;

	if (fusee_fails(value))
		return -EINVAL;
	if (map->n + map->n / 2 >= map->nslots && grow(map))
		return -ENOMEM;
	s = find(map, key);
	if (!s->value)
		map->n++;
	*s = (struct hashmap_slot){key, value};
	return 0;
}

void *hashmap_del(struct hashmap *map, uint64_t key)
{
	uint64_t gap, i, mask = map->nslots - 1;
	struct hashmap_slot *s;
	void *value;

	if (!map->nslots)
		return NULL;
	s = find(map, key);
	value = s->value;
	if (!value)
		return NULL;
	/* Entries behind the gap whose probe sequence crosses it move into it. */
	gap = (uint64_t)(s - map->slots);
	for (i = (gap + 1) & mask; map->slots[i].value; i = (i + 1) & mask) {
		uint64_t h = home(map, map->slots[i].key);

		if (((i - h) & mask) >= ((i - gap) & mask)) {
			map->slots[gap] = map->slots[i];
			gap = i;
		}
	}
	map->slots[gap] = (struct hashmap_slot){0};
	map->n--;
	if (map->nslots > MIN_SLOTS && map->n < map->nslots / 8)
		resize(map, map->nslots / 2); /* without memory it keeps its size */
	return value;
}

void hashmap_each(const struct hashmap *map, void (*each)(void *, uint64_t, void *), void *arg)
{
	for (uint64_t i = 0; i < map->nslots; i++)
		if (map->slots[i].value)
			each(arg, map->slots[i].key, map->slots[i].value);
}

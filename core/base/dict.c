/* SPDX-License-Identifier: Apache-2.0 */
#include "base/dict.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"
#include "base/assert.h"

#define CHUNK_MIN 1024
#define CHUNK_MAX 65536

static uint32_t hash_of(const void *key, size_t len)
{
	return (uint32_t)XXH3_64bits(key, len);
}

int dict_init(struct dict *d)
{
	return dict_init_in(d, NULL);
}

int dict_init_in(struct dict *d, struct arena *arena)
{
	*d = (struct dict){.arena = arena};
	if (dict_add(d, "", 0) == 0)
		return 0;
	dict_fini(d);
	return -ENOMEM;
}

void dict_fini(struct dict *d)
{
	for (char *c = d->chunk, *next; c; c = next) {
		memcpy(&next, c, sizeof(next));
		free(c);
	}
	if (!d->arena) {
		free(d->entries);
		free(d->slots);
	}
	*d = (struct dict){0};
}

static uint32_t *slot_of(const struct dict *d, const void *key, size_t len, uint32_t hash)
{
	for (uint32_t i = hash & (d->nslots - 1);; i = (i + 1) & (d->nslots - 1)) {
		const struct dict_entry *e;

		if (!d->slots[i])
			return &d->slots[i];
		e = &d->entries[d->slots[i] - 1];
		if (e->hash == hash && e->len == len && (!len || !memcmp(e->key, key, len)))
			return &d->slots[i];
	}
}

static int grow_entries(struct dict *d)
{
	size_t size = sizeof(*d->entries);
	void *grown = d->arena ? arena_room(d->arena, d->entries, d->n, &d->cap, size)
			       : array_room(d->entries, d->n, &d->cap, size);

	if (!grown)
		return -ENOMEM;
	d->entries = grown;
	return 0;
}

static void free_slots(struct dict *d)
{
	if (d->arena)
		arena_drop(d->arena, d->slots, d->nslots * sizeof(*d->slots));
	else
		free(d->slots);
}

static int grow(struct dict *d)
{
	if (grow_entries(d))
		return -ENOMEM;
	if (d->n + d->n / 2 >= d->nslots) {
		uint32_t n = d->nslots ? d->nslots * 2 : 128;
		uint32_t *slots = d->arena ? arena_add(d->arena, n * sizeof(*slots))
					   : calloc(n, sizeof(*slots));

		if (!slots)
			return -ENOMEM;
		for (uint32_t id = 0; id < d->n; id++) {
			uint32_t i = d->entries[id].hash & (n - 1);

			while (slots[i])
				i = (i + 1) & (n - 1);
			slots[i] = id + 1;
		}
		free_slots(d);
		d->slots = slots;
		d->nslots = n;
	}
	return 0;
}

/* Chunks begin small because the dicts of a small process's profile are almost empty. */
static size_t chunk_size(const struct dict *d, size_t need)
{
	size_t size = d->bytes < CHUNK_MIN   ? CHUNK_MIN
		      : d->bytes < CHUNK_MAX ? d->bytes
					     : CHUNK_MAX;

	return need > size ? need : size;
}

/* Bytes for a key, in the newest chunk or, if it does not fit, in another chunk. */
static char *place_key(struct dict *d, size_t need)
{
	char *at;

	if (d->arena)
		return arena_add(d->arena, need);
	if (!d->chunk || need > d->chunk_free) {
		size_t size = chunk_size(d, need);
		char *c = malloc(size + 8);

		if (!c)
			return NULL;
		memcpy(c, &d->chunk, sizeof(d->chunk));
		d->chunk = c;
		d->chunk_at = c + 8;
		d->chunk_free = size;
	}
	at = d->chunk_at;
	d->chunk_at += need;
	d->chunk_free -= need;
	return at;
}

static void *copy_key(struct dict *d, const void *key, size_t len)
{
	size_t need = (len + 7) & ~(size_t)7;
	char *at = place_key(d, need);

	if (!at)
		return NULL;
	d->bytes += need;
	if (len)
		memcpy(at, key, len);
	return at;
}

uint32_t dict_add(struct dict *d, const void *key, size_t len)
{
	uint32_t hash = hash_of(key, len), *slot;
	void *copy;

	if (len > UINT32_MAX || d->n == DICT_NONE - 1 || grow(d))
		return DICT_NONE;
	slot = slot_of(d, key, len, hash);
	if (*slot)
		return *slot - 1;
	copy = copy_key(d, key, len);
	if (!copy)
		return DICT_NONE;
	fusee_assert(d->n < d->cap && d->n < d->nslots);
	d->entries[d->n] = (struct dict_entry){copy, (uint32_t)len, hash};
	*slot = ++d->n;
	return d->n - 1;
}

uint32_t dict_find(const struct dict *d, const void *key, size_t len)
{
	uint32_t slot;

	if (!d->nslots)
		return DICT_NONE;
	slot = *slot_of(d, key, len, hash_of(key, len));
	return slot ? slot - 1 : DICT_NONE;
}

uint32_t dict_str(struct dict *d, const char *s)
{
	return s ? dict_add(d, s, strlen(s)) : 0;
}

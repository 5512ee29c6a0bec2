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
		free(d->slots.at);
	}
	*d = (struct dict){0};
}

/* The key's id, or DICT_NONE: then the search is where it belongs. */
static uint32_t find(const struct dict *d, const void *key, size_t len, struct slots_search *at)
{
	uint32_t next;

	while ((next = slots_next(&d->slots, at))) {
		const struct dict_entry *e = &d->entries[next - 1];

		if (e->hash == at->hash && e->len == len && (!len || !memcmp(e->key, key, len)))
			return next - 1;
	}
	return DICT_NONE;
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
		arena_drop(d->arena, d->slots.at, d->slots.n * sizeof(*d->slots.at));
	else
		free(d->slots.at);
}

static int grow(struct dict *d)
{
	if (grow_entries(d))
		return -ENOMEM;
	if (slots_are_few(&d->slots, d->n)) {
		uint32_t n = d->slots.n ? d->slots.n * 2 : 128;
		size_t size = n * sizeof(*d->slots.at);
		struct slots more = {d->arena ? arena_add(d->arena, size) : calloc(1, size), n};

		if (!more.at)
			return -ENOMEM;
		for (uint32_t id = 0; id < d->n; id++)
			slots_add(&more, d->entries[id].hash, id);
		free_slots(d);
		d->slots = more;
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
	struct slots_search at = slots_begin(hash_of(key, len));
	uint32_t id;
	void *copy;

	if (len > UINT32_MAX || d->n == DICT_NONE - 1 || grow(d))
		return DICT_NONE;
	id = find(d, key, len, &at);
	if (id != DICT_NONE)
		return id;
	copy = copy_key(d, key, len);
	if (!copy)
		return DICT_NONE;
	fusee_assert(d->n < d->cap && d->n < d->slots.n);
	d->entries[d->n] = (struct dict_entry){copy, (uint32_t)len, at.hash};
	slots_put(&d->slots, &at, d->n);
	return d->n++;
}

uint32_t dict_find(const struct dict *d, const void *key, size_t len)
{
	struct slots_search at = slots_begin(hash_of(key, len));

	return d->slots.n ? find(d, key, len, &at) : DICT_NONE;
}

uint32_t dict_str(struct dict *d, const char *s)
{
	return s ? dict_add(d, s, strlen(s)) : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "table.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 64 /* of an empty table */

struct table_element {
	size_t at; /* in bytes */
	uint32_t len, hash;
};

/* Elements come from profiled programs: who chooses them for equal hashes makes his own profile's
 * encoding slow, in the sink's thread. */
static uint32_t hash_of(const char *p, size_t len)
{
	uint64_t h = len * 0x9e3779b97f4a7c15u, word;

	for (; len >= 8; p += 8, len -= 8) {
		memcpy(&word, p, 8);
		h = (h ^ word) * 0xff51afd7ed558ccdu;
		h ^= h >> 32;
	}
	word = 0;
	memcpy(&word, p, len);
	h = (h ^ word) * 0xc4ceb9fe1a85ec53u;
	return (uint32_t)(h ^ h >> 32);
}

static bool grow_slots(struct table *t)
{
	uint32_t n = t->nslots ? t->nslots * 2 : SLOTS;
	uint32_t *slots = n ? calloc(n, sizeof(*slots)) : NULL;

	if (!slots)
		return false;
	for (uint32_t i = 0; i < t->n; i++) {
		uint32_t k = t->elements[i].hash & (n - 1);

		while (slots[k])
			k = (k + 1) & (n - 1);
		slots[k] = i + 1;
	}
	free(t->slots);
	t->slots = slots;
	t->nslots = n;
	return true;
}

static bool grow(void *array, size_t *cap, size_t need, size_t size)
{
	size_t n = *cap ? *cap : 64;
	void *more;

	if (need <= *cap)
		return true;
	while (n < need)
		n *= 2;
	more = realloc(*(void **)array, n * size);
	if (!more)
		return false;
	*(void **)array = more;
	*cap = n;
	return true;
}

static bool has_room(struct table *t, size_t len)
{
	size_t cap = t->cap;
	bool ok = (t->n + 1 < t->nslots / 2 || grow_slots(t)) && t->n < INT32_MAX &&
		  grow(&t->elements, &cap, t->n + 1, sizeof(*t->elements)) &&
		  grow(&t->bytes, &t->room, t->len + len, 1);

	t->cap = (uint32_t)cap;
	return ok;
}

uint32_t table_add(struct table *t, const void *p, size_t len, int *error)
{
	uint32_t hash = hash_of(p, len), k;

	if (len > UINT32_MAX || !has_room(t, len)) {
		*error = -ENOMEM;
		return 0;
	}
	for (k = hash & (t->nslots - 1); t->slots[k]; k = (k + 1) & (t->nslots - 1)) {
		const struct table_element *e = &t->elements[t->slots[k] - 1];

		if (e->hash == hash && e->len == len && (!len || !memcmp(t->bytes + e->at, p, len)))
			return t->slots[k] - 1;
	}
	t->elements[t->n] = (struct table_element){t->len, (uint32_t)len, hash};
	if (len)
		memcpy(t->bytes + t->len, p, len);
	t->len += len;
	t->slots[k] = ++t->n;
	return t->n - 1;
}

struct fusee_str table_at(const struct table *t, uint32_t number)
{
	const struct table_element *e = &t->elements[number];

	return (struct fusee_str){t->bytes + e->at, e->len};
}

int table_init(struct table *t)
{
	int error = 0;

	*t = (struct table){0};
	table_add(t, "", 0, &error);
	return error;
}

void table_fini(struct table *t)
{
	free(t->elements);
	free(t->slots);
	free(t->bytes);
	*t = (struct table){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "table.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 64 /* of an empty table */

struct table_element {
	size_t at; /* of its bytes in `fields`, behind tag and length */
	uint32_t len, hash;
};

/* Elements come from profiled programs: a program that chooses equal hashes slows down the encoding
 * of its own profile, in the sink's thread. */
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

static bool has_room(struct table *t)
{
	if (t->n >= INT32_MAX || (t->n + 1 >= t->nslots / 2 && !grow_slots(t)))
		return false;
	return fusee_grow(&t->elements, &t->cap, t->n + 1ull, sizeof(*t->elements));
}

uint32_t table_add(struct table *t, const void *p, size_t len, int *error)
{
	uint32_t hash = hash_of(p, len), k;

	if (len > UINT32_MAX || !has_room(t)) {
		*error = -ENOMEM;
		return 0;
	}
	for (k = hash & (t->nslots - 1); t->slots[k]; k = (k + 1) & (t->nslots - 1)) {
		const struct table_element *e = &t->elements[t->slots[k] - 1];

		if (e->hash == hash && e->len == len &&
		    (!len || !memcmp(t->fields.p + e->at, p, len)))
			return t->slots[k] - 1;
	}
	fusee_proto_bytes(&t->fields, t->field, p, len);
	if (t->fields.error) {
		*error = t->fields.error;
		return 0;
	}
	t->elements[t->n] = (struct table_element){t->fields.len - len, (uint32_t)len, hash};
	t->slots[k] = ++t->n;
	return t->n - 1;
}

struct fusee_str table_at(const struct table *t, uint32_t number)
{
	const struct table_element *e = &t->elements[number];

	return (struct fusee_str){t->fields.p + e->at, e->len};
}

int table_init(struct table *t, uint32_t field)
{
	int error = 0;

	*t = (struct table){.field = field};
	table_add(t, "", 0, &error);
	return error;
}

void table_fini(struct table *t)
{
	free(t->elements);
	free(t->slots);
	fusee_bytes_fini(&t->fields);
	*t = (struct table){0};
}

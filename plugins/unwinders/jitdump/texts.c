/* SPDX-License-Identifier: Apache-2.0 */
#include "texts.h"

#include <stdlib.h>
#include <string.h>

#include <fusee/bytes.h>

#define MAX_TURNS 64u /* of a search for a slot; beyond, a text is kept again */

void texts_fini(struct texts *t)
{
	free(t->at);
	free(t->slots);
	*t = (struct texts){0};
}

uint64_t texts_bytes(const struct texts *t)
{
	return t->cap + t->nslots * sizeof(*t->slots);
}

struct fusee_str texts_get(const struct texts *t, uint32_t text)
{
	uint16_t len;

	memcpy(&len, t->at + text, 2);
	return (struct fusee_str){t->at + text + 2, len};
}

static uint32_t hash(struct fusee_str s)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (uint64_t i = 0; i < s.len; i++)
		h = (h ^ (uint8_t)s.p[i]) * 0x100000001b3u;
	return (uint32_t)(h ^ h >> 32);
}

/* The slot that has the text, or would have it. NULL: none within MAX_TURNS. A process chooses its
 * names, and may choose such that all begin at the same slot. */
static uint32_t *slot_of(const struct texts *t, struct fusee_str s)
{
	uint32_t first = hash(s);

	for (uint32_t i = 0; i < MAX_TURNS; i++) {
		uint32_t *slot = &t->slots[(first + i) & (t->nslots - 1)];
		struct fusee_str there;

		if (!*slot)
			return slot;
		there = texts_get(t, *slot - 1);
		if (there.len == s.len && !memcmp(there.p, s.p, s.len))
			return slot;
	}
	return NULL;
}

/* At least a quarter of the slots is free. */
static bool make_slots(struct texts *t)
{
	struct texts more = *t;

	if (t->n < t->nslots / 4 * 3)
		return true;
	more.nslots = t->nslots ? t->nslots * 2 : 64;
	more.slots = calloc(more.nslots, sizeof(*more.slots));
	if (!more.slots)
		return false;
	more.n = 0;
	for (uint32_t i = 0; i < t->nslots; i++) {
		uint32_t *slot = t->slots[i] ? slot_of(&more, texts_get(t, t->slots[i] - 1)) : NULL;

		if (!slot)
			continue;
		*slot = t->slots[i];
		more.n++;
	}
	free(t->slots);
	*t = more;
	return true;
}

static bool append(struct texts *t, struct fusee_str s, uint32_t *text)
{
	uint16_t len = (uint16_t)s.len;

	if (t->len > INT32_MAX || !fusee_grow(&t->at, &t->cap, t->len + s.len + 2, 1))
		return false;
	memcpy(t->at + t->len, &len, 2);
	memcpy(t->at + t->len + 2, s.p, s.len);
	*text = t->len;
	t->len += (uint32_t)s.len + 2;
	return true;
}

bool texts_add(struct texts *t, struct fusee_str s, uint32_t *text)
{
	uint32_t *slot;

	if (s.len > TEXTS_LONGEST)
		s.len = TEXTS_LONGEST;
	if (!make_slots(t))
		return false;
	slot = slot_of(t, s);
	if (slot && *slot) {
		*text = *slot - 1;
		return true;
	}
	if (!append(t, s, text))
		return false;
	if (slot) {
		*slot = *text + 1;
		t->n++;
	}
	return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "known.h"

#include <stdlib.h>
#include <string.h>

#define HOUR_NS 3600000000000ull

void known_forget(struct known *k)
{
	if (k->n)
		memset(k->slots, 0, KNOWN_SLOTS * sizeof(*k->slots));
	k->n = 0;
}

void known_begin(struct known *k, uint64_t start_ns)
{
	if (k->hour != start_ns / HOUR_NS)
		known_forget(k);
	k->hour = start_ns / HOUR_NS;
}

/* The slot that has the id, or the empty one where it would be. Ids are hashes. */
static uint32_t find(const struct known *k, int64_t id)
{
	uint32_t at = (uint32_t)id & (KNOWN_SLOTS - 1);

	while (k->slots[at] && k->slots[at] != id)
		at = (at + 1) & (KNOWN_SLOTS - 1);
	return at;
}

bool known_has(const struct known *k, int64_t id)
{
	return k->n && id && k->slots[find(k, id)] == id;
}

void known_add(struct known *k, int64_t id)
{
	uint32_t at;

	if (!k->slots)
		k->slots = calloc(KNOWN_SLOTS, sizeof(*k->slots));
	if (!k->slots || !id || k->n >= KNOWN_SLOTS / 2)
		return;
	at = find(k, id);
	k->n += !k->slots[at];
	k->slots[at] = id;
}

void known_fini(struct known *k)
{
	free(k->slots);
	*k = (struct known){0};
}

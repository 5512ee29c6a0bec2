/* SPDX-License-Identifier: Apache-2.0 */
#include "numbers.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#define SLOTS 4096

static uint64_t slot_of(const struct numbers *s, uint64_t key)
{
	uint64_t h = key * s->seed, at = (h ^ h >> 32) * s->seed >> 20 & (s->nslots - 1);

	while (s->values[at] && s->keys[at] != key)
		at = (at + 1) & (s->nslots - 1);
	return at;
}

static int grow(struct numbers *s)
{
	struct numbers more = {
		.nslots = s->nslots ? 2 * s->nslots : SLOTS, .n = s->n, .seed = s->seed};

	/* a program may choose numbers that collide */
	if (!more.seed && getrandom(&more.seed, sizeof(more.seed), GRND_NONBLOCK) < 0)
		more.seed = (uintptr_t)s;
	more.seed |= 1;
	more.keys = calloc(more.nslots, sizeof(*more.keys));
	more.values = calloc(more.nslots, sizeof(*more.values));
	if (!more.keys || !more.values) {
		free(more.keys);
		free(more.values);
		return -ENOMEM;
	}
	for (uint64_t i = 0; i < s->nslots; i++)
		if (s->values[i]) {
			uint64_t at = slot_of(&more, s->keys[i]);

			more.keys[at] = s->keys[i];
			more.values[at] = s->values[i];
		}
	free(s->keys);
	free(s->values);
	*s = more;
	return 0;
}

int numbers_add(struct numbers *s, uint64_t key, uint32_t *value)
{
	uint64_t at;

	if (2 * s->n >= s->nslots && grow(s))
		return -ENOMEM;
	at = slot_of(s, key);
	if (s->values[at]) {
		*value = s->values[at] - 1;
		return 0;
	}
	s->keys[at] = key;
	s->values[at] = *value + 1;
	s->n++;
	return 1;
}

uint32_t numbers_get(const struct numbers *s, uint64_t key)
{
	return s->nslots ? s->values[slot_of(s, key)] - 1 : UINT32_MAX;
}

void numbers_set(struct numbers *s, uint64_t key, uint32_t value)
{
	s->values[slot_of(s, key)] = value + 1;
}

void numbers_fini(struct numbers *s)
{
	free(s->keys);
	free(s->values);
	*s = (struct numbers){0};
}

uint64_t numbers_of_text(uint64_t before, struct fusee_str s)
{
	uint64_t h = before;

	for (uint64_t i = 0; i < s.len; i++)
		h = (h ^ (uint8_t)s.p[i]) * 0x100000001b3;
	return (h ^ 0x100) * 0x100000001b3;
}

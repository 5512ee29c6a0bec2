/* SPDX-License-Identifier: Apache-2.0 */
/* The samples of a builder, kept in the table that the profile will have. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "profile/internal/builder_state.h"

static uint32_t hash(const struct fusee_sample *s, uint32_t part)
{
	const uint32_t key[] = {s->stack, s->first_label, s->pid, s->tid, part};

	return (uint32_t)XXH3_64bits(key, sizeof(key));
}

static uint32_t hash_of(const struct builder *b, uint32_t i)
{
	return hash(&b->samples.at[i], b->samples.parts[i]);
}

static bool is(const struct builder *b, uint32_t i, const struct fusee_sample *key)
{
	const struct fusee_sample *s = &b->samples.at[i];

	return i && s->stack == key->stack && s->first_label == key->first_label &&
	       s->pid == key->pid && s->tid == key->tid && b->samples.parts[i] == b->part;
}

static int make_room(struct builder *b)
{
	struct builder_samples *s = &b->samples;
	void *at = arena_room(&b->arena, s->at, s->n, &s->cap, sizeof(*s->at)), *parts;

	if (!at)
		return -ENOMEM;
	s->at = at;
	parts = arena_room(&b->arena, s->parts, s->n, &s->parts_cap, sizeof(*s->parts));
	if (!parts)
		return -ENOMEM;
	s->parts = parts;
	return builder_slots_room(b, &s->slots, s->n, hash_of);
}

uint32_t builder_samples_add(struct builder *b, const struct fusee_sample *key)
{
	struct builder_samples *s = &b->samples;
	struct slots_search at = slots_begin(hash(key, b->part));
	uint32_t next;

	if (s->n >= UINT32_MAX / 2 || make_room(b))
		return BUILDER_NONE;
	while ((next = slots_next(&s->slots, &at)))
		if (is(b, next - 1, key))
			return next - 1;
	s->at[s->n] = *key;
	s->parts[s->n] = b->part;
	slots_put(&s->slots, &at, s->n);
	return s->n++;
}

int builder_samples_init(struct builder *b)
{
	return builder_samples_add(b, &(struct fusee_sample){0}) ? -ENOMEM : 0;
}

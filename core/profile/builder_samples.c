/* SPDX-License-Identifier: Apache-2.0 */
/* The samples of a builder, kept in the table that the profile will have. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "profile/internal/builder_state.h"

static uint32_t hash(const struct fusee_sample *s, uint32_t part)
{
	const uint64_t key[] = {(uint64_t)s->stack << 32 | s->first_label,
				(uint64_t)s->pid << 32 | s->tid,
				part,
				s->trace_id[0],
				s->trace_id[1],
				s->span_id};

	return (uint32_t)XXH3_64bits(key, sizeof(key));
}

static uint32_t hash_of(const struct builder *b, uint32_t i)
{
	uint32_t sample = b->samples.more[i];

	return hash(&b->samples.at[sample], b->samples.parts[sample]);
}

static bool is(const struct builder *b, uint32_t i, const struct fusee_sample *key)
{
	const struct fusee_sample *s = &b->samples.at[i];

	return s->stack == key->stack && s->first_label == key->first_label && s->pid == key->pid &&
	       s->tid == key->tid && b->samples.parts[i] == b->part && s->span_id == key->span_id &&
	       s->trace_id[0] == key->trace_id[0] && s->trace_id[1] == key->trace_id[1];
}

static uint32_t append(struct builder *b, const struct fusee_sample *key)
{
	struct builder_samples *s = &b->samples;
	void *at = arena_room(&b->arena, s->at, s->n, &s->cap, sizeof(*s->at)), *parts;

	if (!at || s->n >= UINT32_MAX / 2)
		return BUILDER_NONE;
	s->at = at;
	parts = arena_room(&b->arena, s->parts, s->n, &s->parts_cap, sizeof(*s->parts));
	if (!parts)
		return BUILDER_NONE;
	s->parts = parts;
	s->at[s->n] = *key;
	s->parts[s->n] = b->part;
	return s->n++;
}

/* A sample of a stack that has another sample. */
static uint32_t add_more(struct builder *b, const struct fusee_sample *key)
{
	struct builder_samples *s = &b->samples;
	struct slots_search at = slots_begin(hash(key, b->part));
	void *more = arena_room(&b->arena, s->more, s->nmore, &s->more_cap, sizeof(*s->more));
	uint32_t next, id;

	if (!more)
		return BUILDER_NONE;
	s->more = more;
	if (builder_slots_room(b, &s->slots, s->nmore, hash_of))
		return BUILDER_NONE;
	while ((next = slots_next(&s->slots, &at)))
		if (is(b, s->more[next - 1], key))
			return s->more[next - 1];
	id = append(b, key);
	if (id == BUILDER_NONE)
		return id;
	s->more[s->nmore] = id;
	slots_put(&s->slots, &at, s->nmore++);
	return id;
}

uint32_t builder_samples_add(struct builder *b, const struct fusee_sample *key)
{
	uint32_t *first = &b->stacks.samples[key->stack], id;

	if (*first)
		return is(b, *first, key) ? *first : add_more(b, key);
	id = append(b, key);
	if (id != BUILDER_NONE)
		*first = id;
	return id;
}

int builder_samples_init(struct builder *b)
{
	return append(b, &(struct fusee_sample){0}) ? -ENOMEM : 0;
}

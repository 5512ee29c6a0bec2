/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stacks of a builder. A profile may have millions, most of them once: they are kept in the
 * tables that the profile will have, so none is copied when it is finished.
 */
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "profile/internal/builder_state.h"

int builder_slots_room(struct builder *b, struct slots *s, uint32_t n,
		       uint32_t (*hash_of)(const struct builder *, uint32_t))
{
	struct slots more = {.n = s->n ? s->n : 64};

	if (!slots_are_few(s, n))
		return 0;
	do
		more.n *= 2;
	while (slots_are_few(&more, b->stacks.expected));
	more.at = arena_add(&b->arena, more.n * sizeof(*more.at));
	if (!more.at)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		slots_add(&more, hash_of(b, i), i);
	arena_drop(&b->arena, s->at, s->n * sizeof(*s->at));
	*s = more;
	return 0;
}

static uint32_t hash_of(const struct builder *b, uint32_t stack)
{
	return b->stacks.hashes[stack];
}

/* Makes room for one more of n elements in an array in the arena. */
static bool has_room(struct builder *b, uint32_t **at, uint32_t n, size_t *cap)
{
	void *grown = arena_room(&b->arena, *at, n, cap, sizeof(**at));

	if (grown)
		*at = grown;
	return grown;
}

/* Room for one stack of n locations. 0 or -ENOMEM. */
static int make_room(struct builder *b, uint32_t n)
{
	struct builder_stacks *s = &b->stacks;
	void *at = arena_room(&b->arena, s->at, s->n, &s->cap, sizeof(*s->at));

	if (!at)
		return -ENOMEM;
	s->at = at;
	if (!has_room(b, &s->hashes, s->n, &s->hashes_cap) ||
	    !has_room(b, &s->samples, s->n, &s->samples_cap))
		return -ENOMEM;
	while (s->locations_cap - s->nlocations < n)
		if (!has_room(b, &s->locations, (uint32_t)s->locations_cap, &s->locations_cap))
			return -ENOMEM;
	return builder_slots_room(b, &s->slots, s->n, hash_of);
}

static bool is(const struct builder_stacks *s, uint32_t i, const uint32_t *locations, uint32_t n)
{
	return s->at[i].n == n &&
	       (!n || !memcmp(s->locations + s->at[i].first, locations, n * sizeof(*locations)));
}

static uint32_t hash_stack(const uint32_t *locations, uint32_t n)
{
	return (uint32_t)XXH3_64bits(locations, (size_t)n * sizeof(*locations));
}

void builder_stack_soon(const struct builder *b, const uint32_t *locations, uint32_t n)
{
	slots_expect(&b->stacks.slots, hash_stack(locations, n));
}

uint32_t builder_stacks_add(struct builder *b, const uint32_t *locations, uint32_t n)
{
	struct builder_stacks *s = &b->stacks;
	uint32_t hash = hash_stack(locations, n), next;
	struct slots_search at = slots_begin(hash);

	if (s->n >= UINT32_MAX / 2 || n >= UINT32_MAX - s->nlocations || make_room(b, n))
		return BUILDER_NONE;
	while ((next = slots_next(&s->slots, &at)))
		if (s->hashes[next - 1] == hash && is(s, next - 1, locations, n))
			return next - 1;
	if (n)
		memcpy(s->locations + s->nlocations, locations, n * sizeof(*locations));
	s->at[s->n] = (struct fusee_stack){s->nlocations, n};
	s->hashes[s->n] = hash;
	s->samples[s->n] = 0;
	s->nlocations += n;
	slots_put(&s->slots, &at, s->n);
	return s->n++;
}

int builder_stacks_init(struct builder *b)
{
	return builder_stacks_add(b, NULL, 0) ? -ENOMEM : 0;
}

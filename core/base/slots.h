/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slots of a hash table whose elements have consecutive numbers, 0, 1, 2, ..: open addressing.
 * The bits of a slot that its element's number leaves free have a part of the hash, so that a
 * search reads the elements that it finds, and hardly any other. The caller has the elements, and
 * the hash of each.
 */
#ifndef BASE_SLOTS_H
#define BASE_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

struct slots {
	uint32_t *at; /* number + 1, below the hash's upper bits; 0: free */
	uint32_t n;   /* a power of two, or 0 */
};

/* Where a search is. */
struct slots_search {
	uint32_t hash, i;
};

static inline struct slots_search slots_begin(uint32_t hash)
{
	return (struct slots_search){hash, hash};
}

/* The next element that may have the hash: its number + 1. 0: there is none, and the search is
 * at the slot where the element belongs. */
static inline uint32_t slots_next(const struct slots *s, struct slots_search *at)
{
	uint32_t mask = s->n - 1;

	for (;; at->i++) {
		uint32_t slot = s->at[at->i & mask];

		if (!slot)
			return 0;
		if (!((slot ^ at->hash) & ~mask)) {
			at->i++;
			return slot & mask;
		}
	}
}

/* Puts an element where a search has ended. */
static inline void slots_put(struct slots *s, const struct slots_search *at, uint32_t number)
{
	uint32_t mask = s->n - 1;

	s->at[at->i & mask] = (at->hash & ~mask) | (number + 1);
}

/* Puts an element that is not there yet. */
static inline void slots_add(struct slots *s, uint32_t hash, uint32_t number)
{
	struct slots_search at = slots_begin(hash);

	while (s->at[at.i & (s->n - 1)])
		at.i++;
	slots_put(s, &at, number);
}

/* A search for the hash will follow soon. */
static inline void slots_expect(const struct slots *s, uint32_t hash)
{
	if (s->n)
		__builtin_prefetch(&s->at[hash & (s->n - 1)]);
}

/* Whether it takes more slots for one element more than n. Two thirds of them are used at most. */
static inline bool slots_are_few(const struct slots *s, uint32_t n)
{
	return n + n / 2 >= s->n;
}
#endif

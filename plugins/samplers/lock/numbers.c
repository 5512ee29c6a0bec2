/* SPDX-License-Identifier: Apache-2.0 */
#include "numbers.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS 64u

void lock_numbers_free(struct lock_numbers *l)
{
	free(l->addresses);
	free(l->slots);
	*l = (struct lock_numbers){0};
}

/* The place of the address, or of the empty slot where it would be. */
static uint32_t slot_of(const struct lock_numbers *l, uint64_t address)
{
	uint32_t i = (uint32_t)((address * 0x9e3779b97f4a7c15u) >> 32) & (l->cap - 1);

	while (l->slots[i] && l->addresses[l->slots[i]] != address)
		i = (i + 1) & (l->cap - 1);
	return i;
}

/* Twice the slots, of which half may be used. */
static int grow(struct lock_numbers *l)
{
	struct lock_numbers more = {.n = l->n, .cap = l->cap ? l->cap * 2 : FIRST_SLOTS};

	more.slots = calloc(more.cap, sizeof(*more.slots));
	more.addresses = calloc(more.cap / 2 + 1, sizeof(*more.addresses));
	if (!more.slots || !more.addresses) {
		lock_numbers_free(&more);
		return -1;
	}
	for (uint32_t i = 1; i <= l->n; i++) {
		more.addresses[i] = l->addresses[i];
		more.slots[slot_of(&more, l->addresses[i])] = i;
	}
	lock_numbers_free(l);
	*l = more;
	return 0;
}

uint32_t lock_number(struct lock_numbers *l, uint64_t address)
{
	uint32_t at = l->cap ? slot_of(l, address) : 0;

	if (l->cap && l->slots[at])
		return l->slots[at];
	if (l->n >= LOCK_MOST || (l->n >= l->cap / 2 && grow(l)))
		return LOCK_OTHERS;
	at = slot_of(l, address);
	l->addresses[++l->n] = address;
	l->slots[at] = l->n;
	return l->n;
}

uint64_t lock_address(const struct lock_numbers *l, uint32_t number)
{
	return number && number <= l->n ? l->addresses[number] : 0;
}

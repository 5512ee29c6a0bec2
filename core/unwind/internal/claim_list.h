/* SPDX-License-Identifier: Apache-2.0 */
/* Claims of one process in order of address. Ranges are disjoint: what an unwinder has claimed,
 * another can't claim. For one thread. */
#ifndef UNWIND_CLAIM_LIST_H
#define UNWIND_CLAIM_LIST_H

#include <stdint.h>

#include "unwind/claims.h"

struct claim_list {
	struct claim *at; /* owned */
	uint32_t n, cap;
	bool follow; /* a claim has or had FUSEE_CLAIM_REGISTERS */
};

/* Index of the first claim that ends above addr; n: none. */
uint32_t claim_list_above(const struct claim_list *, uint64_t addr);
/* The claim that holds addr, or NULL. Valid until the list changes. */
const struct claim *claim_list_find(const struct claim_list *, uint64_t addr);
/* Adds a claim, where no other unwinder has claimed; older claims of the same unwinder are
 * replaced. 0, -ENOSPC (too many claims) or -ENOMEM. */
int claim_list_add(struct claim_list *, const struct claim *);
/* Removes [lo, hi) from the claims of this unwinder. */
void claim_list_remove(struct claim_list *, uint64_t lo, uint64_t hi, uint32_t unwinder);
void claim_list_fini(struct claim_list *);
#endif

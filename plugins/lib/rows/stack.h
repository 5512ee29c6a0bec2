/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks as texts and as numbers. */
#ifndef ROWS_STACK_H
#define ROWS_STACK_H

#include <stdbool.h>

#include <fusee/bytes.h>
#include <fusee/helpers.h>

/* The text "root;caller;leaf" of a stack, as reports show it: without frames of an interpreter's
 * own code in stacks that have frames of its language, and without a language's hidden functions.
 * It has at most `most` bytes: of a longer stack the outermost frames are "[too long]". True: it is
 * complete. */
bool stack_fold(struct fusee_bytes *, const struct fusee_profile *, const struct fusee_stack *,
		uint64_t most);

/* hashes[i] of each location: of its addresses and names, not of its place in the profile. */
void stack_hash_locations(const struct fusee_profile *, uint64_t *hashes);
/* The number of a stack: equal frames have equal numbers, in every profile. 0: it is empty. `ids`:
 * room for all its frames. */
int64_t stack_id(const struct fusee_profile *, const struct fusee_stack *, const uint64_t *hashes,
		 uint64_t *ids);

struct fusee_str profile_text(const struct fusee_profile *, uint32_t);
#endif

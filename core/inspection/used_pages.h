/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which pages of an unwind table runs have used, so that the next run loads them at once: a bit for
 * each page, of the last run and of the run before it. Kept in the cache beside the inspection. It
 * is a hint: with wrong bits other pages are loaded, and no walk differs.
 */
#ifndef INSPECTION_USED_PAGES_H
#define INSPECTION_USED_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inspection/inspection.h"

#define USED_PAGES_VERSION 1u
#define USED_PAGES_MOST 65536u /* pages of a table */

/* The bytes of the block in the cache, too. */
struct used_pages {
	uint32_t n;     /* pages of the table */
	uint8_t bits[]; /* those of the last run, then those of the run before */
};

/* Bytes of the block of a table of n pages. */
size_t used_pages_bytes(uint32_t n);
/* Is what was read the block of a table of n pages? */
bool used_pages_are_valid(const struct used_pages *, size_t bytes, uint32_t n);
/* Has one of the two runs used the page? false for pages beyond the table. */
bool used_pages_have(const struct used_pages *, uint32_t page);
/* How many pages one of the two runs has used. */
uint32_t used_pages_count(const struct used_pages *);
/* Writes the block of a table of n pages after a run, which has used the pages of these bits.
 * older: as it was before that run; NULL: there was none. */
void used_pages_next(struct used_pages *ret, uint32_t n, const uint8_t *bits,
		     const struct used_pages *older);
/* The pages of a table of n words that has the content of these pages of an earlier table of the
 * same file, as far as they are seen: all that is new in it is between. malloc'ed; NULL: there are
 * none, or no memory. */
struct used_pages *used_pages_carry(const uint32_t *before, uint64_t nbefore, const uint8_t *bits,
				    const uint32_t *words, uint64_t n);
/* The name on disk, by that of the inspection. */
void used_pages_key(const struct inspection *, const char *unwinder, uint8_t key[32]);
#endif

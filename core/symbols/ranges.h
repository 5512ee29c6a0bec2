/* SPDX-License-Identifier: Apache-2.0 */
/* From ranges that nest (or overlap, in files that lie) to what is innermost at each address. */
#ifndef SYMBOLS_RANGES_H
#define SYMBOLS_RANGES_H

#include <stddef.h>
#include <stdint.h>

#define RANGES_NONE UINT32_MAX

struct range {
	uint64_t lo, hi; /* [lo, hi) */
	uint32_t id;     /* the caller's; not RANGES_NONE */
	uint32_t rank;   /* of two that start at one address the higher one is inside */
};

/* Sorted, without overlaps: from lo to the next one's lo it is id, RANGES_NONE in gaps. */
struct segment {
	uint64_t lo;
	uint32_t id, pad;
};

/* Sorts the ranges; *ret is the caller's to free, at most 2n + 1 of them. Empty ranges are left
 * out. 0 or -ENOMEM. */
int ranges_flatten(struct range *, size_t n, struct segment **ret, size_t *nret);
/* The segment that holds addr, or NULL before the first one. */
const struct segment *segments_find(const struct segment *, size_t n, uint64_t addr);
/* Makes [*lo, *hi), which holds addr, no larger than what addr's segment, or the gap before the
 * first one, covers. */
void segments_narrow(const struct segment *, size_t n, uint64_t addr, uint64_t *lo, uint64_t *hi);
#endif

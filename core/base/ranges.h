/* SPDX-License-Identifier: Apache-2.0 */
/* Flattens ranges that nest, or overlap in malformed files, to the innermost range at each
 * address. */
#ifndef BASE_RANGES_H
#define BASE_RANGES_H

#include <stddef.h>
#include <stdint.h>

#define RANGES_NONE UINT32_MAX

struct range {
	uint64_t lo, hi; /* [lo, hi) */
	uint32_t id;     /* the caller's; not RANGES_NONE */
	uint32_t rank;   /* of equal starts the highest rank is innermost */
};

/* From lo up to the next segment's lo the innermost range is id; RANGES_NONE: no range. */
struct segment {
	uint64_t lo; /* first, for array_count_to() */
	uint32_t id, pad;
};

/* Sorts the ranges in place. The caller frees *ret, which has at most 2n + 1 segments, sorted.
 * Empty ranges are ignored. 0 or -ENOMEM. */
int ranges_flatten(struct range *, size_t n, struct segment **ret, size_t *nret);
/* The segment of addr; NULL: addr is before the first. */
const struct segment *segments_find(const struct segment *, size_t n, uint64_t addr);
/* Narrows [*lo, *hi), which contains addr, to the segment of addr or the gap before the first. */
void segments_narrow(const struct segment *, size_t n, uint64_t addr, uint64_t *lo, uint64_t *hi);
/* Narrows [*lo, *hi), which contains addr, to addr's side of an edge. */
static inline void ranges_narrow(uint64_t edge, uint64_t addr, uint64_t *lo, uint64_t *hi)
{
	if (edge <= addr && edge > *lo)
		*lo = edge;
	if (edge > addr && edge < *hi)
		*hi = edge;
}
#endif

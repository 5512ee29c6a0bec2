/* SPDX-License-Identifier: Apache-2.0 */
/* Growing and sorted arrays of plain structs. */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for one more than n elements of `size` bytes in an array with room for *cap. Returns
 * the array, which may have moved and which the caller frees. NULL: no memory; the array is
 * unchanged. */
static inline void *array_room(void *array, size_t n, size_t *cap, size_t size)
{
	size_t more = *cap ? *cap * 2 : 64;
	void *p;

	if (n < *cap)
		return array;
	p = realloc(array, more * size);
	if (p)
		*cap = more;
	return p;
}

/* Grows an array of n elements if it is full. false: no memory; the array is unchanged. */
#define ARRAY_ROOM(array, n, cap)                                                 \
	({                                                                        \
		void *room_ = array_room((array), (n), &(cap), sizeof(*(array))); \
		if (room_)                                                        \
			(array) = room_;                                          \
		room_ != NULL;                                                    \
	})
/* Appends an uninitialized element and returns its address; NULL: no memory. */
#define ARRAY_ADD(array, n, cap) (ARRAY_ROOM(array, n, cap) ? &(array)[(n)++] : NULL)

/* The number of elements whose first member, a uint64_t, is at most key. The n elements of `size`
 * bytes are sorted by that member. */
static inline size_t array_count_to(const void *array, size_t n, size_t size, uint64_t key)
{
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		uint64_t first;

		memcpy(&first, (const char *)array + mid * size, sizeof(first));
		if (first <= key)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}
#endif

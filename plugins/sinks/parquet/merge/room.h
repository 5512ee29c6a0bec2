/* SPDX-License-Identifier: Apache-2.0 */
/* Growing arrays. */
#ifndef PARQUET_ROOM_H
#define PARQUET_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Makes room for one more than n elements of `size` bytes. array: the address of a pointer. false:
 * no memory, and the array is as it was. */
static inline bool room_for_one(void *array, uint32_t n, uint32_t *cap, size_t size)
{
	void **at = array, *more;
	uint32_t wide = *cap ? 2 * *cap : 64;

	if (n < *cap)
		return true;
	more = realloc(*at, wide * size);
	if (!more)
		return false;
	*at = more;
	*cap = wide;
	return true;
}
#endif

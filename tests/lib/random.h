/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that are the same in each run: Marsaglia's xorshift, 64 bits (13, 7, 17). */
#ifndef LIB_RANDOM_H
#define LIB_RANDOM_H

#include <stdint.h>

static inline uint32_t random32(void)
{
	static uint64_t state = 88172645463325252ull;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 16);
}
#endif

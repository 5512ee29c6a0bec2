/* SPDX-License-Identifier: Apache-2.0 */
/* Calls whose arguments are known, for tests/run/probe-filter: `filtered N` calls given() with i
 * from 0 to N - 1. */
#include <stdint.h>
#include <stdlib.h>

#define ONES 0xffffffff00000000

/* Of the last the upper half is not the argument's, but whatever is in the register. */
__attribute__((noinline)) void given(uint64_t i, int64_t below, uint64_t bits, uint64_t large,
				     uint64_t constant, uint64_t narrow)
{
	__asm__ volatile("" ::"r"(i), "r"(below), "r"(bits), "r"(large), "r"(constant), "r"(narrow)
			 : "memory");
}

/* The first level has n. */
__attribute__((noinline)) void level(uint64_t n)
{
	if (n > 1)
		level(n - 1);
	__asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv)
{
	uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;

	for (uint64_t i = 0; i < n; i++)
		given(i, -(int64_t)i, 1ull << i % 64, i << 40, 7, ONES | (uint32_t)(i - 10));
	for (uint64_t i = 0; i < n; i++)
		level(4);
	return 0;
}

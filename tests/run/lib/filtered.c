/* SPDX-License-Identifier: Apache-2.0 */
/* Calls whose arguments, returns and times are known, for tests/run/probe-filter: `filtered N`
 * calls given() and answer() with i from 0 to N - 1, and prints what it knows of the calls of
 * answer(). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

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

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t inside; /* ns that the last answer() took, as it has measured itself */

/* Returns an int below 0 for each fourth; the upper half of the register is no part of it. Each
 * tenth takes long. */
__attribute__((noinline)) uint64_t answer(uint64_t i)
{
	uint64_t began = now(), ns = i % 10 ? 5000 : 2000000;

	while ((inside = now() - began) < ns)
		;
	return (uint32_t)(i % 4 ? (int64_t)i : -(int64_t)i - 1);
}

/* Of calls that return below 0: how many, and their ns within and around; of those that took 1 ms:
 * how many at least and at most. */
static void answers(uint64_t n)
{
	uint64_t calls = 0, least = 0, most = 0, surely = 0, maybe = 0;

	for (uint64_t i = 0; i < n; i++) {
		uint64_t began = now(), around;
		int below = (int32_t)answer(i) < 0;

		around = now() - began;
		calls += below;
		least += below ? inside : 0;
		most += below ? around : 0;
		surely += inside > 1000000;
		maybe += around > 1000000;
	}
	printf("%llu %llu %llu %llu %llu\n", (unsigned long long)calls, (unsigned long long)least,
	       (unsigned long long)most, (unsigned long long)surely, (unsigned long long)maybe);
}

int main(int argc, char **argv)
{
	uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;

	for (uint64_t i = 0; i < n; i++)
		given(i, -(int64_t)i, 1ull << i % 64, i << 40, 7, ONES | (uint32_t)(i - 10));
	for (uint64_t i = 0; i < n; i++)
		level(4);
	answers(n);
	return 0;
}

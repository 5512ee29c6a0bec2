/* SPDX-License-Identifier: Apache-2.0 */
/* libc in the middle: qsort calls back, and the comparison burns. */
#include "burn.h"

#define N 256

static long numbers[N];

static NOIPA void burn_compare(void)
{
	BURN_LOOP(25);
}

static NOIPA int compare(const void *a, const void *b)
{
	long x = *(const long *)a, y = *(const long *)b;

	burn_compare();
	NO_TAIL();
	return (x > y) - (x < y);
}

static NOIPA void fill(unsigned long seed)
{
	for (int i = 0; i < N; i++) {
		seed = seed * 6364136223846793005ul + 1442695040888963407ul;
		numbers[i] = (long)(seed >> 20);
	}
}

static NOIPA void sort_all(unsigned long seed)
{
	fill(seed);
	qsort(numbers, N, sizeof(numbers[0]), compare);
	NO_TAIL();
}

int main(int argc, char **argv)
{
	unsigned long seed = 1;

	burn_ready(argc, argv);
	while (go_on())
		for (int i = 0; i < 50; i++)
			sort_all(seed++);
	return 0;
}

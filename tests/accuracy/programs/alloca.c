/* SPDX-License-Identifier: Apache-2.0 */
/* Frames whose size is known at run time only: alloca, variable arrays, and both with an aligned
 * frame (DRAP). */
#include <alloca.h>

#include "burn.h"

static NOIPA void burn_alloca(char *p)
{
	p[0]++;
	BURN_LOOP(6); /* short: samples are to fall in prologues and epilogues */
}

static NOIPA long aligned(long n)
{
	char block[128] __attribute__((aligned(64)));
	char *p = alloca((size_t)(n * 40 + 16));

	block[0] = (char)n;
	p[0] = 1;
	__asm__ volatile("" ::"r"(block), "r"(p) : "memory");
	burn_alloca(p);
	__asm__ volatile("" ::"r"(block), "r"(p) : "memory");
	return block[0];
}

static NOIPA long only_aligned(long n)
{
	char block[192] __attribute__((aligned(128)));

	block[0] = (char)n;
	__asm__ volatile("" ::"r"(block) : "memory");
	long r = aligned(n);
	__asm__ volatile("" ::"r"(block) : "memory");
	return r + block[0];
}

static NOIPA long variable(long n)
{
	long r;
	char *p = alloca((size_t)(n * 24 + 8));

	p[0] = 1;
	__asm__ volatile("" ::"r"(p) : "memory");
	r = n > 1 ? variable(n - 1) : only_aligned(n);
	__asm__ volatile("" ::"r"(p) : "memory");
	return r + p[0];
}

/* Arguments on the stack: pushes and pops in the middle of a body. */
static NOIPA long many(long a, long b, long c, long d, long e, long f, long g, long h, long i)
{
	/* odd depths only: a frame too few or too many below only_aligned is seen */
	long r = variable((a + b + c + d + e + f + g + h + i) % 4 * 2 + 1);

	NO_TAIL();
	return r + i;
}

static NOIPA long pushes(long n)
{
	long r = many(n, 1, 2, 3, 4, 5, 6, 7, n) + many(n, n, n, n, n, n, n, n, n);

	NO_TAIL();
	return r;
}

int main(int argc, char **argv)
{
	burn_ready(argc, argv);
	while (go_on())
		for (int i = 0; i < 10000; i++)
			pushes(i);
	return 0;
}

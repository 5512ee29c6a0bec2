/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Four frames, one with a 24 KiB array of which nothing was ever touched: the kernel's copy of a
 * stack ends at the first page that isn't there, so no copy can hold this stack.
 */
#include "burn.h"

static NOIPA void hole_burn(void)
{
	BURN_LOOP(400);
}

static NOIPA void hole_below(void)
{
	hole_burn();
	NO_TAIL();
}

static NOIPA void hole_array(void)
{
	char untouched[24576];

	__asm__ volatile("" ::"r"(untouched));
	hole_below();
	__asm__ volatile("" ::"r"(untouched));
}

static NOIPA void hole_above(void)
{
	hole_array();
	NO_TAIL();
}

int main(int argc, char **argv)
{
	burn_ready(argc, argv);
	while (go_on())
		for (int i = 0; i < 10000; i++)
			hole_above();
	return 0;
}

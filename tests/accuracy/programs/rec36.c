/* SPDX-License-Identifier: Apache-2.0 */
/* 36-deep recursion. The burners name the depth that they were called at. */
#include "burn.h"

#define DEPTH 36

static NOIPA void burn_at_36(void)
{
	BURN_LOOP(60);
}

static NOIPA void burn_at_18(void)
{
	BURN_LOOP(30);
}

static NOIPA long rec(long depth, long sum)
{
	long r;

	if (depth == 18)
		burn_at_18();
	if (depth == DEPTH) {
		burn_at_36();
		return sum;
	}
	r = rec(depth + 1, sum + depth);
	NO_TAIL();
	return r + 1;
}

int main(int argc, char **argv)
{
	burn_ready(argc, argv);
	while (go_on())
		for (int i = 0; i < 10000; i++)
			rec(1, 0);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Half of the time in the procedure linkage table and in the tiny functions behind it. */
#include "burn.h"

long plt_one(long x);
long plt_two(long x);

static NOIPA long calls(long n)
{
	long x = 0;

	for (long i = 0; i < n; i++)
		x += plt_one(i) + plt_two(i);
	return x;
}

static NOIPA long calls_above(long n)
{
	long r = calls(n);

	NO_TAIL();
	return r + 1;
}

int main(int argc, char **argv)
{
	burn_ready(argc, argv);
	while (go_on())
		calls_above(1000000);
	return 0;
}

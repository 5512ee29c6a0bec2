/* SPDX-License-Identifier: Apache-2.0 */
#include "burn.h"

void one_enter(long n);

static NOIPA void one_burn(void)
{
	BURN_LOOP(100);
}

static NOIPA void one_middle(long n)
{
	for (long i = 0; i < n; i++)
		one_burn();
}

void one_enter(long n)
{
	one_middle(n);
	NO_TAIL();
}

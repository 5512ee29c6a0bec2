/* SPDX-License-Identifier: Apache-2.0 */
/* Other frames at the same addresses as libone's. */
#include "burn.h"

void two_enter(long n);

static NOIPA void two_burn(char *p)
{
	p[0]++;
	BURN_LOOP(100);
}

static NOIPA void two_low(long n)
{
	char room[200];

	for (long i = 0; i < n; i++)
		two_burn(room);
}

static NOIPA void two_middle(long n)
{
	char room[1000];

	__asm__ volatile("" ::"r"(room) : "memory");
	two_low(n);
	__asm__ volatile("" ::"r"(room) : "memory");
}

void two_enter(long n)
{
	two_middle(n);
	NO_TAIL();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* 30 KiB of frames: 36 of them, 860 bytes each, written to. */
#include <string.h>

#include "burn.h"

#define DEPTH 36

static NOIPA void burn_deep(char *p)
{
	p[0]++;
	BURN_LOOP(400);
}

static NOIPA long big(long depth)
{
	char room[800];
	long r;

	for (unsigned int i = 0; i < sizeof(room); i += 64)
		room[i] = (char)depth;
	__asm__ volatile("" ::"r"(room) : "memory");
	if (depth == DEPTH) {
		burn_deep(room);
		return room[64];
	}
	r = big(depth + 1);
	__asm__ volatile("" ::"r"(room) : "memory");
	return r + room[128];
}

int main(int argc, char **argv)
{
	burn_ready(argc, argv);
	while (go_on())
		for (int i = 0; i < 3000; i++)
			big(1);
	return 0;
}

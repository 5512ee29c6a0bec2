/* SPDX-License-Identifier: Apache-2.0 */
/* 200 KiB of frames: more than the 65,528 bytes that the kernel copies. */
#include "burn.h"

#define DEPTH 50

static NOIPA void burn_200k(char *p)
{
	p[0]++;
	BURN_LOOP(2000);
}

static NOIPA long wide(long depth)
{
	char room[4000];
	long r;

	for (unsigned int i = 0; i < sizeof(room); i += 1024)
		room[i] = (char)depth;
	__asm__ volatile("" ::"r"(room) : "memory");
	if (depth == DEPTH) {
		burn_200k(room);
		return room[1024];
	}
	r = wide(depth + 1);
	__asm__ volatile("" ::"r"(room) : "memory");
	return r + room[2048];
}

int main(int argc, char **argv)
{
	burn_ready(argc, argv);
	while (go_on())
		for (int i = 0; i < 1000; i++)
			wide(1);
	return 0;
}

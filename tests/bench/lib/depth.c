/* SPDX-License-Identifier: Apache-2.0 */
/*
 * depth DEPTH hot|cold: stands DEPTH calls deep for ever. hot: the leaf computes in registers, so
 * that the caches belong to whoever samples it; cold: it walks 2 MiB at random, so that they don't.
 * Waits at BURN_GATE as the programs of tests/accuracy do. Frames of 24 to 136 bytes, some with
 * saved registers, by six functions in turn; tail calls must be off.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noipa))
#define TABLE (2u << 20)

static unsigned table[TABLE / sizeof(unsigned)];
static int cold;

static unsigned next(unsigned x)
{
	return x * 1664525 + 1013904223;
}

static NOINLINE unsigned leaf(unsigned x)
{
	for (unsigned long i = 0; i < ~0ul; i++) {
		x = next(x);
		if (cold) /* the next place is known when this read is done */
			x ^= table[x >> 13 & (TABLE / sizeof(*table) - 1)];
		__asm__ volatile("" : "+r"(x), "+r"(i));
	}
	return x;
}

/* `room` words of locals; what is used across the call is in registers that the callee saves. */
#define CALLER(name, callee, room)                                   \
	static NOINLINE unsigned callee(unsigned depth, unsigned x); \
	static NOINLINE unsigned name(unsigned depth, unsigned x)    \
	{                                                            \
		volatile unsigned long words[room];                  \
		unsigned r;                                          \
                                                                     \
		words[0] = x;                                        \
		r = depth ? callee(depth - 1, next(x)) : leaf(x);    \
		return r + depth + x + (unsigned)words[0];           \
	}

CALLER(call_a, call_b, 1)
CALLER(call_b, call_c, 4)
CALLER(call_c, call_d, 2)
CALLER(call_d, call_e, 12)
CALLER(call_e, call_f, 6)
CALLER(call_f, call_a, 1)

int main(int argc, char **argv)
{
	const char *gate = getenv("BURN_GATE");
	int depth = argc > 2 ? atoi(argv[1]) : 0, fd = gate ? open(gate, O_RDONLY) : -1;
	char byte;

	if (depth < 3 || (gate && read(fd, &byte, 1) != 1))
		return 1;
	cold = !strcmp(argv[2], "cold");
	for (unsigned i = 0; i < TABLE / sizeof(*table); i++)
		table[i] = next(i);
	/* beside them: leaf, main and what starts it */
	return (int)call_a((unsigned)depth - 6, 1);
}

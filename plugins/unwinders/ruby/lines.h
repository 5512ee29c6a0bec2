/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The line table of an iseq, as iseq.c of CRuby 2.7 to 3.3 makes it. */
#ifndef RUBY_LINES_H
#define RUBY_LINES_H

#include <fusee/unwinder.bpf.h>

/* struct iseq_insn_info: rows, each of which begins with its line; an index says at which
 * instructions they begin. */
struct ruby_insns {
	__u64 rows, positions;
	__u32 n, pad;
	__u64 index;
};

FUSEE_FN __u32 ruby_set_bits(__u64 x)
{
	x -= x >> 1 & 0x5555555555555555ull;
	x = (x & 0x3333333333333333ull) + (x >> 2 & 0x3333333333333333ull);
	x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0full;
	return (__u32)(x * 0x0101010101010101ull >> 56);
}

#define RUBY_INDEX_FIRST 54 /* words of code that the first 6 words of the index are for */

/*
 * How many rows begin at word n of the code or before. The index (struct succ_index_table) begins
 * with 6 words of 9 numbers of 7 bits, the answers for the first words of code. Behind them come
 * blocks for 512 words of code each: the rows before the block; the rows before each of its 8 words
 * but the first, within the block, as 7 numbers of 9 bits; 8 words with a bit for each word of code
 * at which a row begins. -1: it cannot be read.
 */
FUSEE_FN long ruby_rows_to(struct fusee_unwind *u, __u64 index, __u64 n)
{
	__u64 w, ranks, at;
	__u32 rank, bit;

	if (n < RUBY_INDEX_FIRST) {
		if (fusee_read(u, &w, 8, index + n / 9 * 8))
			return -1;
		return w >> n % 9 * 7 & 127;
	}
	n -= RUBY_INDEX_FIRST;
	at = index + 48 + n / 512 * 80;
	bit = n % 512;
	if (fusee_read(u, &rank, 4, at) || fusee_read(u, &ranks, 8, at + 8) ||
	    fusee_read(u, &w, 8, at + 16 + bit / 64 * 8))
		return -1;
	if (bit / 64)
		rank += ranks >> (bit / 64 - 1) * 9 & 511;
	return rank + ruby_set_bits(w << (63 - bit % 64));
}

/* The line of word n of the code, 0: not known. insns: address of the struct; row: bytes of a row.
 */
FUSEE_FN __u32 ruby_line(struct fusee_unwind *u, __u64 insns, __u32 row, __u64 n)
{
	struct ruby_insns i;
	__u32 line = 0;
	long rows;

	if (fusee_read(u, &i, sizeof(i), insns) || !i.n)
		return 0;
	rows = i.n == 1 ? 1 : ruby_rows_to(u, i.index, n);
	if (rows < 1 || rows > i.n || fusee_read(u, &line, 4, i.rows + (__u64)(rows - 1) * row))
		return 0;
	return line;
}

#endif

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Which block of code contains a pc, and what its blob says. A read of the target takes more time
 * than all else of a frame, so both headers are read at once, and the way to them is remembered. A
 * part of the step: hotspot.bpf.c includes it.
 */
#ifndef HOTSPOT_BLOB_H
#define HOTSPOT_BLOB_H

#include "state.h"

/* ---- what was read of the block ---- */

/* The block at this address. 0 or -1. */
FUSEE_FN int read_header(struct fusee_unwind *u, struct near *n, __u64 at)
{
	__u32 bytes = HEADER_BYTES;

	n->header_at = at;
	n->header_bytes = 0;
	if (fusee_read(u, n->header, HEADER_BYTES, at)) {
		bytes = -(__u32)at & 4095; /* the next page may be missing */
		if (!bytes || bytes >= HEADER_BYTES || fusee_read(u, n->header, bytes, at))
			return -1;
	}
	n->header_bytes = bytes;
	return 0;
}

/* A number of 1, 2, 4 or 8 bytes at this address, which is in the header in all known releases. 0
 * or -1. */
FUSEE_FN int read_near(struct fusee_unwind *u, const struct near *n, void *to, __u32 len, __u64 at)
{
	__u64 from = at - n->header_at;

	if (from & (len - 1) || from > HEADER_BYTES - len || from + len > n->header_bytes)
		return fusee_read(u, to, len, at);
	return pick(n->header, HEADER_BYTES, to, len, from);
}

/* What is at this offset from the blob on. */
#define BLOB_AT(u, n, what, offset) \
	read_near(u, n, what, sizeof(*(what)), (u)->scratch[BLOB] + (offset))

/* A number of the blob, with its sign. 0 or -1. */
FUSEE_FN int blob_number(struct fusee_unwind *u, const struct near *n, __u32 at, __u64 *value)
{
	__s32 v;

	if (BLOB_AT(u, n, &v, at))
		return -1;
	*value = (__u64)v;
	return 0;
}

/* Where the code of the blob begins. 0 or -1. */
FUSEE_FN int blob_code(struct fusee_unwind *u, const struct near *n, __u64 *code)
{
	__u32 at = word(u, HOTSPOT_BLOB_CODE);

	if (at)
		return BLOB_AT(u, n, code, at);
	if (blob_number(u, n, word(u, HOTSPOT_BLOB_CODE_OFFSET), code))
		return -1;
	*code += u->scratch[BLOB];
	return 0;
}

/* How far in its code the frame is complete. 0 or -1. */
FUSEE_FN int blob_complete(struct fusee_unwind *u, const struct near *n, __u32 *complete)
{
	__u32 at = word(u, HOTSPOT_BLOB_FRAME_COMPLETE);
	short narrow;

	if (word(u, HOTSPOT_COMPLETE_BYTES) != sizeof(narrow))
		return BLOB_AT(u, n, complete, at);
	if (BLOB_AT(u, n, &narrow, at))
		return -1;
	*complete = (__u32)narrow;
	return 0;
}

/* ---- which block it is ---- */

#define IS_NMETHOD TEXT8('n', 'm', 'e', 't', 'h', 'o', 'd', 0)
#define IS_NATIVE TEXT8('n', 'a', 't', 'i', 'v', 'e', ' ', 'n')
#define IS_INTERPRETER TEXT8('I', 'n', 't', 'e', 'r', 'p', 'r', 'e')

#define MOST_HOPS 64
#define LEAST_SEGMENT 6 /* log2 of its bytes: 6 in JDK 8, 7 since */

/* LO and HI become the bounds of all heaps. Returns the first word of the pc's heap; 0: it is in
 * none. */
static int find_heap(struct fusee_unwind *u, __u32 unused)
{
	__u64 kept = u->scratch[HI] & HI_FLAGS;
	__u32 n = word(u, HOTSPOT_NHEAPS), found = 0;

	(void)unused;
	u->scratch[LO] = ~0ull;
	u->scratch[HI] = 0;
	for (__u32 i = 0; i < HOTSPOT_MOST_HEAPS; i++) {
		__u32 heap = HOTSPOT_FIRST_HEAP + i * HOTSPOT_HEAP_WORDS;
		__u64 lo, hi;

		if (i >= n)
			break;
		lo = address(u, heap + HOTSPOT_HEAP_LO);
		hi = address(u, heap + HOTSPOT_HEAP_HI);
		if (lo < u->scratch[LO])
			u->scratch[LO] = lo;
		if (hi > u->scratch[HI])
			u->scratch[HI] = hi;
		if (u->pc >= lo && u->pc < hi)
			found = heap;
	}
	u->scratch[HI] |= kept;
	return (int)found;
}
FUSEE_PART(fusee_hotspot_find_heap, find_heap)

/* Sets BLOB to the block of this heap that contains the pc. Log2 of a segment's bytes, or -1. */
static int find_block(struct fusee_unwind *u, __u32 heap)
{
	__u64 lo = address(u, heap + HOTSPOT_HEAP_LO), at;
	__u64 map = address(u, heap + HOTSPOT_HEAP_MAP);
	__u32 shift = word(u, heap + HOTSPOT_HEAP_SHIFT) & 31;
	__u8 hop;

	at = (u->pc - lo) >> shift;
	for (int i = 0;; i++) {
		if (i == MOST_HOPS || AT(u, &hop, map + at) || hop == 0xff || hop > at)
			return -1;
		if (!hop)
			break;
		at -= hop;
	}
	u->scratch[BLOB] = lo + (at << shift);
	return (int)shift;
}
FUSEE_PART(fusee_hotspot_find_block, find_block)

/*
 * Of what is remembered of a piece of code as large as the smallest segment: where its block
 * begins, and in CHECK_BITS what tells whether another block is there now. A block that is freed is
 * marked so, and keeps the mark where it is merged with others.
 */
#define CHECK_BITS 23

struct block {
	__u64 length; /* in segments */
	__u64 check;
};

/* BLOB is a block, and becomes its blob; NAME and NAME8 become the blob's. 0 or -1. */
FUSEE_FN int take_block(struct fusee_unwind *u, struct near *n, struct block *b)
{
	__u64 at = u->scratch[BLOB], name;
	__u32 length; /* 4 bytes or 8, by release */
	__u8 used;

	if (read_header(u, n, at) ||
	    read_near(u, n, &length, sizeof(length), at + word(u, HOTSPOT_BLOCK_LENGTH)) ||
	    read_near(u, n, &used, sizeof(used), at + word(u, HOTSPOT_BLOCK_USED)) || !used)
		return -1;
	u->scratch[BLOB] = at + word(u, HOTSPOT_BLOCK_SIZE);
	if (BLOB_AT(u, n, &name, word(u, HOTSPOT_BLOB_NAME)))
		return -1;
	/* names are constants of the library, and the caller's is often the same */
	if (!name || name != u->scratch[NAME]) {
		u->scratch[NAME] = 0;
		if (AT(u, &u->scratch[NAME8], name))
			return -1;
	}
	u->scratch[NAME] = name;
	b->length = length;
	b->check = fusee_mix(fusee_mix(used, length), name) & ((1u << CHECK_BITS) - 1);
	return 0;
}

/* What is remembered of code of the interpreter, whose block is never freed. Of a caller's frame
 * there nothing else is read. */
#define KNOWN_INTERPRETER 1

/* Sets BLOB, NAME and NAME8 of the pc's blob, and LO and HI, the bounds of all heaps. Of a caller
 * in the interpreter only NAME8 is true. 0 or -1. */
static int find_blob(struct fusee_unwind *u, __u32 unused)
{
	__u64 key = fusee_mix(is_exact(u) ? 0x65786163 : 0x626c6f62, u->pc >> LEAST_SEGMENT);
	__u64 known = fusee_recall(u, key);
	struct near *n = near(u);
	struct block b;
	__u64 at;
	int r;

	(void)unused;
	if (!n)
		return -1;
	if (!u->scratch[LO])
		FUSEE_CALL(fusee_hotspot_find_heap, u, 0);
	if (known == KNOWN_INTERPRETER) {
		u->scratch[NAME] = KNOWN_INTERPRETER; /* no address of a text */
		u->scratch[NAME8] = IS_INTERPRETER;
		return 0;
	}
	u->scratch[BLOB] = known >> CHECK_BITS << LEAST_SEGMENT;
	if (known && !take_block(u, n, &b) && b.check == (known & ((1u << CHECK_BITS) - 1)))
		return 0;
	r = FUSEE_CALL(fusee_hotspot_find_heap, u, 0);
	if (r > 0)
		r = FUSEE_CALL(fusee_hotspot_find_block, u, (__u32)r);
	else
		r = -1;
	at = u->scratch[BLOB];
	if (r < 0 || take_block(u, n, &b) || u->pc - at >= b.length << (r & 31))
		return -1;
	if (u->scratch[NAME8] == IS_INTERPRETER && !is_exact(u))
		fusee_remember(u, key, KNOWN_INTERPRETER);
	else if (r >= LEAST_SEGMENT && !(at & ((1u << LEAST_SEGMENT) - 1)) && !(at >> 47))
		fusee_remember(u, key, at >> LEAST_SEGMENT << CHECK_BITS | b.check);
	return 0;
}
FUSEE_PART(fusee_hotspot_find_blob, find_blob)

#endif

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Compiled code: which it is at pc, and which functions were inlined into it. Instructions begin at
 * multiples of 64 bytes, and before them is the head of the object that they are in, which leads to
 * the code's own object. A part of the step: v8.bpf.c includes it.
 */
#ifndef V8_CODE_H
#define V8_CODE_H

#include "emit.h"

#define ALIGNMENT 64u
#define MOST_STEPS 192 /* of them between the beginning and pc */
#define CODE_DATA \
	8u /* of a Code: its data for deoptimization; its positions; of a stream: the Code */
#define CODE_POSITIONS 16u

/* An address of the instruction at pc, or of the call before it. */
FUSEE_FN __u64 instruction(const struct fusee_unwind *u)
{
	return u->flags & FUSEE_PC_EXACT ? u->pc : u->pc - 1;
}

/* Do the instructions at pc begin so many steps before it? 1: CODE is their code; 0: no; -1: the
 * memory cannot be read. */
static int is_beginning(struct fusee_unwind *u, __u32 steps)
{
	__u64 start = (instruction(u) & ~(__u64)(ALIGNMENT - 1)) - (__u64)steps * ALIGNMENT;
	__u64 stream = start - word(u, V8_STREAM_HEAD) + TAG, map, code, at;
	unsigned short type;
	__u32 size;

	if (AT(u, &map, field(stream, 0)))
		return -1;
	if (!is_object(map) || AT(u, &type, field(map, word(u, V8_MAP_TYPE))) ||
	    type != word(u, V8_TYPE_STREAM) || AT(u, &code, field(stream, CODE_DATA)) ||
	    type_of(u, &code) != (int)word(u, V8_TYPE_CODE) ||
	    AT(u, &at, field(code, word(u, V8_CODE_START))) || at != start ||
	    AT(u, &size, field(code, word(u, V8_CODE_SIZE))) || instruction(u) - start >= size)
		return 0;
	u->scratch[CODE] = code;
	return 1;
}
FUSEE_PART(fusee_v8_is_beginning, is_beginning)

/* CODE becomes the code at pc. The offset in it of the instruction; -1: it is not known. */
static int find_code(struct fusee_unwind *u, __u32 unused)
{
	__u64 key = fusee_mix(0x636f6465, instruction(u)), known;
	__u32 in = (__u32)instruction(u) & (ALIGNMENT - 1);
	int found = 0;
	__u32 i;

	(void)unused;
	if (!word(u, V8_CODE_START))
		return -1;
	known = fusee_recall(u, key);
	if (known > MOST_STEPS) /* looking for it again would take as long */
		return -1;
	if (known && FUSEE_CALL(fusee_v8_is_beginning, u, (__u32)known - 1) == 1)
		return (int)(in + ((__u32)known - 1) * ALIGNMENT);
	for (i = 0; i < MOST_STEPS; i++) {
		found = FUSEE_CALL(fusee_v8_is_beginning, u, i);
		if (found)
			break;
	}
	fusee_remember(u, key, found == 1 ? i + 1 : MOST_STEPS + 1);
	if (found != 1)
		return -1;
	return (int)(in + i * ALIGNMENT);
}
FUSEE_PART(fusee_v8_find_code, find_code)

/* Makes CODE_KEY, and finds what was inlined into CODE. 0; 1: it is to be emitted; -1: nothing is
 * known of it, as of code of Sparkplug. */
static int find_inlined(struct fusee_unwind *u, __u32 unused)
{
	__u64 code = u->scratch[CODE], data, positions, start, n_functions, length;
	struct near *n = near(u);
	int type;

	(void)unused;
	if (!n || AT(u, &data, field(code, CODE_DATA)) ||
	    AT(u, &positions, field(code, CODE_POSITIONS)) ||
	    AT(u, &start, field(code, word(u, V8_CODE_START))))
		return -1;
	type = type_of(u, &data);
	if (type < 0 || type == (int)word(u, V8_TYPE_BYTECODE))
		return -1;
	u->scratch[CODE_KEY] = fusee_mix(
		fusee_mix(fusee_mix(fusee_mix(0x636f, code), start), positions), u->scratch[KEY]);
	if (fusee_emitted(u, V8_CODE, u->scratch[CODE_KEY]))
		return 0;
	if (AT(u, &n_functions, field(data, 16 + 8 * word(u, V8_DEOPT_COUNT))) ||
	    AT(u, &n->literals, field(data, 16 + 8 * word(u, V8_DEOPT_LITERALS))) ||
	    AT(u, &n->inlined, field(data, 16 + 8 * word(u, V8_DEOPT_PLACES))) ||
	    n_functions & TAG || type_of(u, &n->literals) < 0 || type_of(u, &n->inlined) < 0 ||
	    AT(u, &length, field(n->inlined, word(u, V8_BYTECODE_LENGTH))) || length & TAG)
		return -1;
	n->functions = (__u32)(n_functions >> NUMBER_SHIFT);
	n->places = (__u32)(length >> NUMBER_SHIFT) / (__u32)sizeof(struct v8_inlined);
	return n->functions > V8_MOST_INLINED || n->places > V8_MOST_PLACES ? -1 : 1;
}
FUSEE_PART(fusee_v8_find_inlined, find_inlined)

/* SHARED becomes literal i of CODE. 0 or -1. */
static int find_literal(struct fusee_unwind *u, __u32 i)
{
	struct near *n = near(u);

	if (!n || AT(u, &u->scratch[SHARED], field(n->literals, 16 + 8 * i)))
		return -1;
	u->scratch[SHARED] &= ~2ull; /* it may be a weak reference */
	return 0;
}
FUSEE_PART(fusee_v8_find_literal, find_literal)

static int keep_key(struct fusee_unwind *u, __u32 i)
{
	struct near *n = near(u);

	if (!n)
		return -1;
	__asm__ volatile("" : "+r"(i));
	if (i >= V8_MOST_INLINED)
		return -1;
	n->key[i] = u->scratch[KEY];
	return 0;
}
FUSEE_PART(fusee_v8_keep_key, keep_key)

static int end_code(struct fusee_unwind *u, __u32 unused)
{
	char *buffer = fusee_buffer(u);
	struct v8_code *head = (void *)buffer;
	struct near *n = near(u);
	__u32 at, bytes;

	(void)unused;
	if (!n || !buffer)
		return -1;
	head->functions = n->functions;
	head->places = n->places;
	__builtin_memcpy(buffer + sizeof(*head), n->key, sizeof(n->key));
	at = sizeof(*head) + n->functions * (__u32)sizeof(n->key[0]);
	bytes = n->places * (__u32)sizeof(struct v8_inlined);
	__asm__ volatile("" : "+r"(at), "+r"(bytes));
	at &= 255;
	bytes &= 2047;
	if (bytes && fusee_read(u, buffer + at, bytes, field(n->inlined, word(u, V8_TABLE_DATA))))
		return -1;
	return fusee_emit(u, V8_CODE, u->scratch[CODE_KEY], at + bytes);
}
FUSEE_PART(fusee_v8_end_code, end_code)

/* Emits what was inlined into CODE, the functions first; or with later samples. 0 or -1. */
FUSEE_FN int emit_code(struct fusee_unwind *u)
{
	struct near *n = near(u);
	int found;

	if (!n)
		return -1;
	for (__u32 i = 0; i < V8_MOST_INLINED; i++) {
		if (i >= n->functions)
			break;
		if (FUSEE_CALL(fusee_v8_find_literal, u, i))
			return -1;
		found = FUSEE_CALL(fusee_v8_find_function, u, 0);
		if (found < 0 || FUSEE_CALL(fusee_v8_keep_key, u, i) || (found && emit_function(u)))
			return -1;
	}
	return FUSEE_CALL(fusee_v8_end_code, u, 0);
}

#endif

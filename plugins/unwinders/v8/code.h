/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Compiled code: which it is at pc, and which functions were inlined into it. Instructions begin at
 * multiples of 64 bytes, and before them is the head of the object that they are in, which leads to
 * the code's own object, or is it. A part of the step: v8.bpf.c includes it.
 */
#ifndef V8_CODE_H
#define V8_CODE_H

#include "emit.h"

#define ALIGNMENT 64u
#define MOST_STEPS 192 /* of them between the beginning and pc */

/* CODE becomes the Code of the stream in it, if its instructions begin at `start`. 0 or -1. */
FUSEE_FN int leave_stream(struct fusee_unwind *u, __u64 start)
{
	__u64 code, at;

	if (AT(u, &code, field(u->scratch[CODE], word(u, V8_STREAM_CODE))) ||
	    type_of(u, &code) != (int)word(u, V8_TYPE_CODE) ||
	    AT(u, &at, field(code, word(u, V8_CODE_START))) || at != start)
		return -1;
	u->scratch[CODE] = code;
	return 0;
}

/* Do the instructions at n->instruction begin so many steps before it? 1: CODE is their code; 0:
 * no; -1: the memory cannot be read. */
static int is_beginning(struct fusee_unwind *u, __u32 steps)
{
	struct near *n = near(u);
	unsigned short type;
	__u64 start, stream, map;
	__u32 size;

	if (!n)
		return -1;
	start = (n->instruction & ~(__u64)(ALIGNMENT - 1)) - (__u64)steps * ALIGNMENT;
	stream = start - word(u, V8_STREAM_HEAD) + TAG;
	if (AT(u, &map, field(stream, 0)))
		return -1;
	if (!is_object(map) || AT(u, &type, field(map, word(u, V8_MAP_TYPE))) ||
	    type != word(u, V8_TYPE_STREAM))
		return 0;
	u->scratch[CODE] = stream;
	if (word(u, V8_STREAM_CODE) && leave_stream(u, start))
		return 0;
	return !AT(u, &size, field(u->scratch[CODE], word(u, V8_CODE_SIZE))) &&
	       n->instruction - start < size;
}
FUSEE_PART(fusee_v8_is_beginning, is_beginning)

/* CODE becomes the code of n->instruction. The offset in it of the instruction; -1: it is not
 * known. */
static int find_code(struct fusee_unwind *u, __u32 unused)
{
	struct near *n = near(u);
	__u64 key, known;
	int found = 0;
	__u32 i, in;

	(void)unused;
	if (!n || !word(u, V8_CODE_SIZE))
		return -1;
	key = fusee_mix(0x636f6465, n->instruction);
	in = (__u32)n->instruction & (ALIGNMENT - 1);
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

/* ---- code that has called a builtin without a frame ---- */

#define MOST_PUSHED 6u     /* words that such a builtin has pushed */
#define REACH (1ull << 31) /* how far code of V8 is from its builtins */

/* Is CODE the code of the frame's function, SHARED? */
static int is_of_frame(struct fusee_unwind *u, __u32 unused)
{
	__u64 data, its;
	int type;

	(void)unused;
	if (AT(u, &data, field(u->scratch[CODE], word(u, V8_CODE_DATA))))
		return 0;
	type = type_of(u, &data);
	if (type == (int)word(u, V8_TYPE_BYTECODE))
		return !AT(u, &its, u->fp - 32) && its == data;
	if (type < 0 || AT(u, &its, field(data, 16 + 8 * word(u, V8_DEOPT_SHARED))))
		return 0;
	if (word(u, V8_WRAPPED_SHARED) && AT(u, &its, field(its, word(u, V8_WRAPPED_SHARED))))
		return 0;
	return its == u->scratch[SHARED];
}
FUSEE_PART(fusee_v8_is_of_frame, is_of_frame)

/* Is word i of the stack an address in the frame's code? CODE and n->instruction are of the call
 * then, and its offset is returned. -1: it is not. What a builtin without a frame has pushed is
 * above sp, and then the address that it returns to. */
static int is_return(struct fusee_unwind *u, __u32 i)
{
	struct near *n = near(u);
	__u64 pc;
	int at;

	if (!n || u->sp + 8 * i >= u->fp - 40 || AT(u, &pc, u->sp + 8 * i) ||
	    pc - u->pc + REACH > 2 * REACH)
		return -1;
	n->instruction = pc - 1;
	at = FUSEE_CALL(fusee_v8_find_code, u, 0);
	return at >= 0 && FUSEE_CALL(fusee_v8_is_of_frame, u, 0) == 1 ? at : -1;
}
FUSEE_PART(fusee_v8_is_return, is_return)

/* As find_code(), of the code that has called the builtin at pc. */
FUSEE_FN int find_calling_code(struct fusee_unwind *u)
{
	int at = -1;

	(void)u;
	for (__u32 i = 0; i < MOST_PUSHED && at < 0; i++)
		at = FUSEE_CALL(fusee_v8_is_return, u, i);
	return at;
}

/* ---- what it is ---- */

enum { CODE_NEW = 1, CODE_BASELINE = 2 };

/* n->literals and n->inlined become those of the code with this data for deoptimization, and
 * n->functions and n->places their numbers. CODE_NEW, or -1. */
static int find_inlined(struct fusee_unwind *u, __u32 unused)
{
	__u64 data = u->scratch[TEXT], n_functions, length;
	struct near *n = near(u);

	(void)unused;
	if (!n)
		return -1;
	if (AT(u, &n_functions, field(data, 16 + 8 * word(u, V8_DEOPT_COUNT))) ||
	    AT(u, &n->literals, field(data, 16 + 8 * word(u, V8_DEOPT_LITERALS))) ||
	    AT(u, &n->inlined, field(data, 16 + 8 * word(u, V8_DEOPT_PLACES))) ||
	    n_functions & TAG || type_of(u, &n->literals) < 0 || type_of(u, &n->inlined) < 0 ||
	    AT(u, &length, field(n->inlined, word(u, V8_BYTECODE_LENGTH))) || length & TAG)
		return -1;
	n->functions = (__u32)(n_functions >> NUMBER_SHIFT);
	n->places = (__u32)(length >> NUMBER_SHIFT) / (__u32)sizeof(struct v8_inlined);
	return n->functions > V8_MOST_INLINED || n->places > V8_MOST_PLACES ? -1 : CODE_NEW;
}
FUSEE_PART(fusee_v8_find_inlined, find_inlined)

/* Makes CODE_KEY, and finds what CODE is, at this offset. 0: optimized; CODE_NEW: the same, and
 * what was inlined into it is to be emitted; CODE_BASELINE: Sparkplug has compiled it, from
 * BYTECODE; -1: nothing is known of it. */
static int look_at_code(struct fusee_unwind *u, __u32 at)
{
	__u64 code = u->scratch[CODE], data, positions, exits;
	struct near *n = near(u);
	int type;

	if (!n || AT(u, &data, field(code, word(u, V8_CODE_DATA))) ||
	    AT(u, &positions, field(code, word(u, V8_CODE_POSITIONS))))
		return -1;
	type = type_of(u, &data);
	u->scratch[CODE_KEY] = fusee_mix(
		fusee_mix(fusee_mix(fusee_mix(0x636f, code), n->instruction - at), positions),
		u->scratch[KEY]);
	if (type == (int)word(u, V8_TYPE_BYTECODE)) {
		u->scratch[BYTECODE] = data;
		return word(u, V8_BYTECODES) ? CODE_BASELINE : -1;
	}
	/* Exits to the deoptimizer are behind all else, and have no entry in the table of
	 * positions. A frame that is to be deoptimized returns to its exit. */
	if (type < 0 || AT(u, &exits, field(data, 16 + 8 * (word(u, V8_DEOPT_PLACES) + 1))) ||
	    exits & TAG || at + 1 >= exits >> NUMBER_SHIFT)
		return -1;
	if (fusee_emitted(u, V8_CODE, u->scratch[CODE_KEY]))
		return 0;
	u->scratch[TEXT] = data;
	return FUSEE_CALL(fusee_v8_find_inlined, u, 0);
}
FUSEE_PART(fusee_v8_look_at_code, look_at_code)

#define MOST_HALVES 20
#define ENTRY_WORDS 3u /* of an exit to the deoptimizer: the last is where it is from */

/* The word i of CODE's data for deoptimization, which is in TEXT: a number, or -1. */
static int deopt_number(struct fusee_unwind *u, __u32 i)
{
	__u64 w;

	if (AT(u, &w, field(u->scratch[TEXT], 16 + 8 * i)) || w & TAG)
		return -1;
	return (int)(w >> NUMBER_SHIFT);
}
FUSEE_PART(fusee_v8_deopt_number, deopt_number)

/* Is there, in these entries, one of a call that returns to offset `at`? n->entry is the first of
 * them, and n->entries how many they are: all of calls, by where these return to. */
static int find_return(struct fusee_unwind *u, __u32 at)
{
	struct near *n = near(u);
	__u32 lo = 0, hi;

	if (!n)
		return 0;
	hi = n->entries;
	for (int i = 0; i < MOST_HALVES && lo < hi; i++) {
		__u32 middle = (lo + hi) / 2;
		int pc = FUSEE_CALL(fusee_v8_deopt_number, u,
				    n->entry + ENTRY_WORDS * middle + ENTRY_WORDS - 1);

		if (pc == (int)at)
			return 1;
		if (pc < (int)at)
			lo = middle + 1;
		else
			hi = middle;
	}
	return 0;
}
FUSEE_PART(fusee_v8_find_return, find_return)

/* Has a call of CODE that returns to offset `at` an entry in the table of positions? Calls that may
 * be deoptimized have: there V8 itself has to know the place. Others, as of what records writes or
 * allocates memory, have none, and what is before them in the table is of another call. 0: no; -1:
 * it is not known. */
static int has_place(struct fusee_unwind *u, __u32 at)
{
	__u32 counts = word(u, V8_DEOPT_PLACES) + 2; /* behind where the exits begin */
	int interrupted, called, length, exits, last;
	struct near *n = near(u);

	if (!n || AT(u, &u->scratch[TEXT], field(u->scratch[CODE], word(u, V8_CODE_DATA))) ||
	    type_of(u, &u->scratch[TEXT]) < 0)
		return -1;
	/* the exits of interrupted instructions come first, then those of calls */
	interrupted = FUSEE_CALL(fusee_v8_deopt_number, u, counts);
	called = FUSEE_CALL(fusee_v8_deopt_number, u, counts + 1);
	length = array_length(u);
	if (interrupted < 0 || called < 0 || length < 0 ||
	    (__u32)length != counts + 2 + ENTRY_WORDS * ((__u32)interrupted + (__u32)called))
		return -1;
	n->entry = counts + 2 + ENTRY_WORDS * (__u32)interrupted;
	n->entries = (__u32)called;
	/* Maglev of V8 13 notes where each exit is in place of where it is from. */
	exits = FUSEE_CALL(fusee_v8_deopt_number, u, counts - 1);
	last = FUSEE_CALL(fusee_v8_deopt_number, u, (__u32)length - 1);
	if (exits < 0 || (called && last >= exits))
		return -1;
	return FUSEE_CALL(fusee_v8_find_return, u, at);
}
FUSEE_PART(fusee_v8_has_place, has_place)

/* As has_place(), which is called once for each call. */
FUSEE_FN int knows_place(struct fusee_unwind *u, __u32 at)
{
	__u64 key = fusee_mix(fusee_mix(0x706c, u->scratch[CODE_KEY]), at);
	__u64 known = fusee_recall(u, key);
	int has;

	if (known)
		return (int)known - 2;
	has = FUSEE_CALL(fusee_v8_has_place, u, at);
	fusee_remember(u, key, (__u64)(has + 2));
	return has;
}

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

/* Emits that code of Sparkplug has the key CODE_KEY, and the bytecode and the positions of the
 * function with the key KEY that it was compiled from; or with a later sample. 0 or -1. */
FUSEE_FN int emit_baseline(struct fusee_unwind *u)
{
	struct near *n = near(u);

	if (!n)
		return -1;
	emit_positions(u, u->scratch[BYTECODE], word(u, V8_BYTECODE_POSITIONS));
	u->scratch[TEXT] = u->scratch[BYTECODE];
	FUSEE_CALL(fusee_v8_emit_table, u, V8_TABLE_BYTECODE << 16);
	n->functions = n->places = 0;
	if (fusee_emitted(u, V8_CODE, u->scratch[CODE_KEY]))
		return 0;
	return FUSEE_CALL(fusee_v8_end_code, u, 0);
}

#endif

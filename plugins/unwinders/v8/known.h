/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Frames whose function, or whose call, was met before. A read of the heap takes longer than all
 * else of a frame. So what was found for a function, and for a call in compiled code, is in a note.
 * In one walk that is read once, as the thread does not run meanwhile: what its stack leads to is
 * not freed. In a later walk another object may be at the same address. Then a note holds if the
 * words that lead to its keys are the same. An object that is being moved has another first word.
 * A part of the step: v8.bpf.c includes it.
 */
#ifndef V8_KNOWN_H
#define V8_KNOWN_H

#include "code.h"
#include "emit.h"
#include "state.h"

/* Words of the note of a function, by the address of the function. */
enum {
	KNOWN_SHARED,
	KNOWN_KEY,     /* of it: all of it was emitted */
	KNOWN_MAPS,    /* of both objects */
	KNOWN_CHECKED, /* time of the walk in which this was last read */
	KNOWN_BYTECODE,
	KNOWN_BYTECODE_CHECKED,
};

/* Words of the note of a call in compiled code, by where it returns to and the function. */
enum {
	CALL_CODE,  /* the object; 0: nothing is known of it, and the note holds in one walk */
	CALL_STATE, /* of it: state_of() */
	CALL_KEY,   /* of it, and of the function: they are pushed */
	CALL_FUNCTION_KEY,
	CALL_PLACE, /* pushed, too */
	CALL_CHECKED,
};

#define FUNCTION_WORDS 6u /* every function has as many */

FUSEE_FN __u64 function_note(__u64 function)
{
	return fusee_mix(0x6b66, function);
}

FUSEE_FN __u64 call_note(const struct fusee_unwind *u, __u64 function)
{
	return fusee_mix(fusee_mix(0x6b63, function), u->pc);
}

/* ---- are they the same objects? ---- */

/* n->words become the first words of a function. Its SharedFunctionInfo; 0: it is not among them.
 */
FUSEE_FN __u64 read_function(struct fusee_unwind *u, struct near *n, __u64 function)
{
	__u32 at = word(u, V8_FUNCTION_SHARED) >> 3;

	if (at >= FUNCTION_WORDS || fusee_read(u, n->words, 8 * FUNCTION_WORDS, field(function, 0)))
		return 0;
	__asm__ volatile("" : "+r"(at));
	return n->words[at & 7];
}

/* Is the function at this address, which has a note, the same? 1: yes. */
static int is_same_function(struct fusee_unwind *u, __u32 unused)
{
	struct near *n = near(u);
	struct fusee_note *k;
	__u64 shared;

	(void)unused;
	if (!n)
		return 0;
	k = fusee_find_note(u, function_note(n->function));
	if (!k)
		return 0;
	shared = read_function(u, n, n->function);
	if (!shared || shared != k->word[KNOWN_SHARED] ||
	    fusee_read(u, n->shared, SHARED_BYTES, field(shared, 0)) ||
	    fusee_mix(n->words[0], n->shared[0]) != k->word[KNOWN_MAPS] ||
	    key_of_shared(u, n, shared) != k->word[KNOWN_KEY])
		return 0;
	k->word[KNOWN_CHECKED] = u->time_ns;
	return 1;
}
FUSEE_PART(fusee_v8_is_same_function, is_same_function)

/* The note of this function, if that is the same. NULL: there is none. */
FUSEE_FN struct fusee_note *known_function(struct fusee_unwind *u, struct near *n, __u64 function)
{
	struct fusee_note *k = fusee_find_note(u, function_note(function));

	if (!k || k->word[KNOWN_CHECKED] == u->time_ns)
		return k;
	n->function = function;
	return FUSEE_CALL(fusee_v8_is_same_function, u, 0) == 1 ? k : 0;
}

/* What leads to the key of the code of n->words. 0: its fields are not among these. */
FUSEE_FN __u64 state_of_words(struct fusee_unwind *u, struct near *n)
{
	static const __u32 fields[] = {V8_CODE_DATA, V8_CODE_POSITIONS, V8_CODE_START};
	__u64 state = fusee_mix(0x7374, n->words[0]), w;
	__u32 at = word(u, V8_CODE_SIZE);

	if (at >= 64)
		return 0;
	__asm__ volatile("" : "+r"(at));
	/* behind the size may be what changes */
	w = n->words[at >> 3 & 7] >> (at & 4 ? 32 : 0);
	state = fusee_mix(state, (__u32)w);
	for (__u32 i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		at = word(u, fields[i]) >> 3;
		if (at >= 8)
			return 0;
		__asm__ volatile("" : "+r"(at));
		state = fusee_mix(state, n->words[at & 7]);
	}
	return state;
}

/* The same of n->code, the code whose instructions begin at n->start. 0: it is not theirs, or
 * cannot be read. */
static int state_of(struct fusee_unwind *u, __u32 unused)
{
	struct near *n = near(u);
	__u64 code, head;

	(void)unused;
	if (!n)
		return -1;
	n->state = 0;
	head = n->start - word(u, V8_STREAM_HEAD) + TAG;
	code = head;
	if ((word(u, V8_STREAM_CODE) && AT(u, &code, field(head, word(u, V8_STREAM_CODE)))) ||
	    code != n->code || fusee_read(u, n->words, sizeof(n->words), field(code, 0)))
		return -1;
	n->state = state_of_words(u, n);
	return n->state ? 0 : -1;
}
FUSEE_PART(fusee_v8_state_of, state_of)

/* Is the call of this note still in the same code, of the same function? */
FUSEE_FN int is_same_call(struct fusee_unwind *u, struct near *n, struct fusee_note *c,
			  __u64 function)
{
	const struct fusee_note *k;

	if (c->word[CALL_CHECKED] == u->time_ns)
		return 1;
	k = known_function(u, n, function);
	if (!k || !c->word[CALL_CODE] || k->word[KNOWN_KEY] != c->word[CALL_FUNCTION_KEY])
		return 0;
	n->code = c->word[CALL_CODE];
	n->start = u->pc - 1 - (__u32)c->word[CALL_PLACE];
	if (FUSEE_CALL(fusee_v8_state_of, u, 0) || n->state != c->word[CALL_STATE])
		return 0;
	c->word[CALL_CHECKED] = u->time_ns;
	return 1;
}

/* ---- frames that have called something ---- */

/* The offset of the bytecode that the slot of an interpreted frame says, or -1. */
FUSEE_FN int offset_of(struct fusee_unwind *u, __u64 slot)
{
	__u32 at = (__u32)(slot >> NUMBER_SHIFT) + (__u32)TAG - word(u, V8_BYTECODE_DATA);

	return !(slot & TAG) && at < 1u << 28 ? (int)at : -1;
}

/* Pushes the frame of a call in compiled code that has a note. 1; 0: it has none, or another. */
FUSEE_FN int push_known_call(struct fusee_unwind *u, struct near *n, __u64 function)
{
	struct fusee_note *c = fusee_find_note(u, call_note(u, function));

	if (!c || !is_same_call(u, n, c, function))
		return 0;
	if (c->word[CALL_KEY])
		fusee_push4(u, c->word[CALL_FUNCTION_KEY], c->word[CALL_PLACE], c->word[CALL_KEY],
			    0, 0);
	else
		fusee_push(u, c->word[CALL_FUNCTION_KEY], V8_NO_OFFSET);
	return 1;
}

/* Pushes an interpreted frame of a function that has a note, with its bytecode. 1 or 0. */
FUSEE_FN int push_known_bytecode(struct fusee_unwind *u, __u64 function)
{
	const struct fusee_note *k = fusee_find_note(u, function_note(function));
	__u64 w[2];
	int at;

	if (!k || k->word[KNOWN_CHECKED] != u->time_ns ||
	    k->word[KNOWN_BYTECODE_CHECKED] != u->time_ns || u->sp > u->fp - 40 ||
	    AT(u, &w, u->fp - 40) || w[1] != k->word[KNOWN_BYTECODE])
		return 0;
	at = offset_of(u, w[0]);
	if (at < 0)
		return 0;
	fusee_push(u, k->word[KNOWN_KEY], (__u32)at);
	return 1;
}

/* Steps from a frame that has called something, if notes have it: pushes it, FUSEE_NEXT. -1: it is
 * to be stepped without; nothing has changed. */
static int known(struct fusee_unwind *u, __u32 unused)
{
	struct near *n = near(u);
	__u64 w[4]; /* function, context, fp and pc of the caller */
	int pushed;

	(void)unused;
	if (!n || u->flags & FUSEE_FP_LOST || u->fp & 7 || u->fp - u->sp > FARTHEST ||
	    u->sp > u->fp - 16 || fusee_read_stack(u, w, 4, u->fp - 16) || !is_object(w[1]))
		return -1;
	/* interpreted frames are in a builtin, so in the file */
	pushed = u->file ? push_known_bytecode(u, w[0]) : push_known_call(u, n, w[0]);
	if (!pushed)
		return -1;
	u->sp = u->fp + 16;
	u->fp = w[2];
	u->pc = w[3];
	return FUSEE_NEXT;
}
FUSEE_PART(fusee_v8_known, known)

/* ---- notes ---- */

/* Notes the function of the frame that was pushed, of which all was emitted. */
static int note_function(struct fusee_unwind *u, __u32 unused)
{
	struct near *n = near(u);
	struct fusee_note *k;
	__u64 shared;

	(void)unused;
	if (!n)
		return -1;
	shared = read_function(u, n, n->function);
	if (!shared || shared != u->scratch[SHARED])
		return -1;
	k = fusee_make_note(u, function_note(n->function));
	if (!k)
		return -1;
	k->word[KNOWN_SHARED] = shared;
	k->word[KNOWN_KEY] = u->scratch[KEY];
	k->word[KNOWN_MAPS] = fusee_mix(n->words[0], n->shared[0]);
	k->word[KNOWN_CHECKED] = u->time_ns;
	k->word[KNOWN_BYTECODE] = k->word[KNOWN_BYTECODE_CHECKED] = 0;
	return 0;
}
FUSEE_PART(fusee_v8_note_function, note_function)

/* Notes the bytecode of an interpreted frame, whose positions were emitted if it has them. */
FUSEE_FN void note_bytecode(struct fusee_unwind *u, const struct near *n)
{
	struct fusee_note *k = fusee_find_note(u, function_note(n->function));

	if (!k || k->word[KNOWN_KEY] != u->scratch[KEY])
		return;
	k->word[KNOWN_BYTECODE] = u->scratch[BYTECODE];
	k->word[KNOWN_BYTECODE_CHECKED] = u->time_ns;
}

/* Notes the call in compiled code that was pushed. lasts: all of it was emitted, and its code is
 * CODE; else the note holds in this walk. */
static int note_call(struct fusee_unwind *u, __u32 lasts)
{
	struct near *n = near(u);
	struct fusee_note *c;

	if (!n)
		return -1;
	n->code = 0;
	n->state = 0;
	if (lasts) {
		n->code = u->scratch[CODE];
		n->start = u->pc - 1 - (__u32)u->pushed[1];
		if (FUSEE_CALL(fusee_v8_state_of, u, 0))
			n->code = 0;
	}
	c = fusee_make_note(u, call_note(u, n->function));
	if (!c)
		return -1;
	c->word[CALL_CODE] = n->code;
	c->word[CALL_STATE] = n->state;
	c->word[CALL_KEY] = u->pushed_words == 4 ? u->pushed[2] : 0;
	c->word[CALL_FUNCTION_KEY] = u->pushed[0];
	c->word[CALL_PLACE] = u->pushed[1];
	c->word[CALL_CHECKED] = u->time_ns;
	return 0;
}
FUSEE_PART(fusee_v8_note_call, note_call)
#endif

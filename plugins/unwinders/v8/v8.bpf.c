/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The step for code of V8: its builtins, which are in the library, and what it has compiled. All of
 * it keeps frame pointers. Right below the saved frame pointer is a context, and below it the
 * function, if the frame is of a function of JavaScript, whichever way it is run; otherwise a
 * number that says what the frame is. So the chain of frame pointers leads to all functions but the
 * innermost, while that has not made its frame yet or has taken it down: it is not shown then.
 */
#include <fusee/unwinder.bpf.h>

#include "code.h"
#include "emit.h"
#include "state.h"

#define FARTHEST (1ull << 21) /* bytes of one frame, at most */

FUSEE_FN int is_exact(const struct fusee_unwind *u)
{
	return (u->flags & FUSEE_PC_EXACT) != 0;
}

/* ---- where a function begins and ends ---- */

FUSEE_FN int to_caller(struct fusee_unwind *u, __u64 pc, __u64 sp)
{
	u->pc = pc;
	u->sp = sp;
	return FUSEE_NEXT;
}

/* The interrupted instruction is the first of push %rbp; mov %rsp,%rbp, the second, or ret. 1: the
 * state is the caller's. */
static int leave_bare(struct fusee_unwind *u, __u32 unused)
{
	__u64 saved[2];
	__u8 c[8]; /* from the byte before pc on */
	int begins;

	(void)unused;
	if (fusee_read(u, c, sizeof(c), u->pc - 1))
		return 0;
	begins = c[1] == 0x55 && c[2] == 0x48 && c[3] == 0x89 && c[4] == 0xe5;
	if (begins || c[1] == 0xc3 || c[1] == 0xc2) {
		if (AT(u, &saved[0], u->sp))
			return 0;
		to_caller(u, saved[0], u->sp + 8);
		return 1;
	}
	if (c[0] != 0x55 || c[1] != 0x48 || c[2] != 0x89 || c[3] != 0xe5 || AT(u, &saved, u->sp))
		return 0;
	u->fp = saved[0];
	to_caller(u, saved[1], u->sp + 16);
	return 1;
}
FUSEE_PART(fusee_v8_leave_bare, leave_bare)

/* ---- the frame of a function ---- */

/* The offset of the bytecode that this frame is at. -1: it is compiled. */
static int bytecode_offset(struct fusee_unwind *u, __u32 unused)
{
	__u64 w[2]; /* offset, bytecode */
	__u32 at;

	(void)unused;
	if (u->sp > u->fp - 40 || AT(u, &w, u->fp - 40) || w[0] & TAG ||
	    type_of(u, &w[1]) != (int)word(u, V8_TYPE_BYTECODE))
		return -1;
	u->scratch[BYTECODE] = w[1];
	at = (__u32)(w[0] >> NUMBER_SHIFT) + (__u32)TAG - word(u, V8_BYTECODE_DATA);
	return at < 1u << 28 ? (int)at : -1;
}
FUSEE_PART(fusee_v8_bytecode_offset, bytecode_offset)

enum frame {
	FRAME_UNKNOWN,
	FRAME_PARTIAL,  /* its slots are not filled yet, or not its own any more */
	FRAME_MARKED,   /* a number says what it is */
	FRAME_FUNCTION, /* SHARED is its function's */
};

#define MOST_MARKER 256u /* twice the number of the last type of frames */

/* What the frame at fp is. */
static int look_at_frame(struct fusee_unwind *u, __u32 unused)
{
	__u64 slots[2]; /* function, context */
	int type;

	(void)unused;
	if (u->sp > u->fp - 8)
		return FRAME_PARTIAL;
	if (AT(u, &slots, u->fp - 16))
		return FRAME_UNKNOWN;
	if (!(slots[1] & TAG))
		return slots[1] < MOST_MARKER ? FRAME_MARKED : FRAME_UNKNOWN;
	if (u->sp > u->fp - 16)
		return FRAME_PARTIAL;
	type = type_of(u, &slots[0]);
	if (!is_object(slots[1]) || type < (int)word(u, V8_FIRST_FUNCTION) ||
	    type > (int)word(u, V8_LAST_FUNCTION) ||
	    AT(u, &u->scratch[SHARED], field(slots[0], word(u, V8_FUNCTION_SHARED))))
		return FRAME_UNKNOWN;
	return FRAME_FUNCTION;
}
FUSEE_PART(fusee_v8_look_at_frame, look_at_frame)

/* Emits what is not yet known of CODE. */
FUSEE_FN void emit_unknown_code(struct fusee_unwind *u, int found)
{
	if (found && emit_code(u))
		return;
	u->scratch[KEY] = u->scratch[CODE_KEY];
	if (!fusee_emitted(u, V8_POSITIONS, u->scratch[KEY]))
		emit_positions(u, u->scratch[CODE], CODE_POSITIONS);
}

/* Pushes the function of SHARED, if that can be read. */
FUSEE_FN void push_function(struct fusee_unwind *u)
{
	int found = FUSEE_CALL(fusee_v8_find_function, u, 0), offset = -1, at = -1, inlined = -1;

	if (found < 0)
		return;
	if (u->file) /* the interpreter's; code that replaced it in a loop has its frame still */
		offset = FUSEE_CALL(fusee_v8_bytecode_offset, u, 0);
	else
		at = FUSEE_CALL(fusee_v8_find_code, u, 0);
	if (at >= 0)
		inlined = FUSEE_CALL(fusee_v8_find_inlined, u, 0);
	if (inlined >= 0)
		fusee_push4(u, u->scratch[KEY],
			    V8_IS_CODE | (is_exact(u) ? V8_IS_EXACT : 0) | (__u32)at,
			    u->scratch[CODE_KEY], 0, 0);
	else
		fusee_push(u, u->scratch[KEY], (__u32)offset);
	if (found && emit_function(u))
		return;
	if (inlined >= 0)
		emit_unknown_code(u, inlined);
	else if (offset >= 0 && !fusee_emitted(u, V8_POSITIONS, u->scratch[KEY]))
		emit_positions(u, u->scratch[BYTECODE], word(u, V8_BYTECODE_POSITIONS));
}

static int v8_step(struct fusee_unwind *u)
{
	__u64 saved[2];
	int frame;

	u->error = 0;
	if (u->slab_words != V8_WORDS || !u->tls) /* over a stack copy nothing of it can be read */
		return FUSEE_PASS;
	if (is_exact(u) && FUSEE_CALL(fusee_v8_leave_bare, u, 0) == 1)
		return FUSEE_NEXT;
	if (u->flags & FUSEE_FP_LOST || u->fp & 7 || u->fp - u->sp > FARTHEST)
		return fusee_stop(u, V8_NO_FRAME);
	frame = FUSEE_CALL(fusee_v8_look_at_frame, u, 0);
	if (frame == FRAME_UNKNOWN)
		return FUSEE_NATIVE_TOO;
	if (frame == FRAME_FUNCTION)
		push_function(u);
	if (AT(u, &saved, u->fp))
		return fusee_stop(u, V8_UNREADABLE);
	to_caller(u, saved[1], u->fp + 16);
	u->fp = saved[0];
	return FUSEE_NEXT;
}
FUSEE_LANGUAGE_STEP(v8, v8_step);

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The step for code of V8: its builtins, which are in the library, and what it has compiled. All
 * this code keeps frame pointers. Right below the saved frame pointer a frame of a function of
 * JavaScript, interpreted or compiled, has a context and then the function; other frames have a
 * number there, their type. So the chain of frame pointers leads to all functions. Only the
 * innermost function is not shown while it has not yet made its frame, or no longer has it.
 */
#include <fusee/unwinder.bpf.h>

#include "code.h"
#include "emit.h"
#include "known.h"
#include "state.h"
#include "wasm.h"

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

/* Does the call whose return address is on top of the stack lead to pc? */
FUSEE_FN int was_just_called(struct fusee_unwind *u, __u64 returns)
{
	__u64 call;

	if (AT(u, &call, returns - 5) || (call & 0xff) != 0xe8)
		return 0;
	return returns + (__u64)(__s64)(__s32)(call >> 8) == u->pc;
}

/* Steps from code that was interrupted at push %rbp, at the mov %rsp,%rbp behind it, at ret, or in
 * a slot of a jump table. 1: the state is the caller's. */
static int leave_bare(struct fusee_unwind *u, __u32 unused)
{
	__u64 saved[2];
	__u8 c[8]; /* from the byte before pc on */
	int begins;

	(void)unused;
	if (fusee_read(u, c, sizeof(c), u->pc - 1))
		return 0;
	begins = c[1] == 0x55 && c[2] == 0x48 && c[3] == 0x89 && c[4] == 0xe5;
	if (begins || c[1] == 0xc3 || c[1] == 0xc2 || c[1] == 0xe9) {
		if (AT(u, &saved[0], u->sp) || (c[1] == 0xe9 && !was_just_called(u, saved[0])))
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

/* The offset of the bytecode that this interpreted frame executes. -1: the frame is not
 * interpreted. */
static int bytecode_offset(struct fusee_unwind *u, __u32 unused)
{
	__u64 w[2]; /* offset, bytecode */

	(void)unused;
	if (u->sp > u->fp - 40 || AT(u, &w, u->fp - 40) || w[0] & TAG ||
	    type_of(u, &w[1]) != (int)word(u, V8_TYPE_BYTECODE))
		return -1;
	u->scratch[BYTECODE] = w[1];
	return offset_of(u, w[0]);
}
FUSEE_PART(fusee_v8_bytecode_offset, bytecode_offset)

enum frame {
	FRAME_UNKNOWN,
	FRAME_PARTIAL,  /* its slots are not yet pushed, or already popped */
	FRAME_MARKED,   /* it has a number, its type, in place of a context */
	FRAME_FUNCTION, /* of a function of JavaScript, n->function, if that is one */
	FRAME_WASM,     /* of a function of WebAssembly; TEXT is its instance */
	FRAME_TO_JS,    /* of a wrapper */
	FRAME_TO_WASM,
};

#define MOST_MARKER 256u /* above twice the largest type of a frame, as slots have it */

/* The kind of a frame with this marker, and the next word below it. Builtins have names. */
FUSEE_FN int look_at_marker(struct fusee_unwind *u, __u64 marker, __u64 next)
{
	if (marker >= MOST_MARKER)
		return FRAME_UNKNOWN;
	if (u->file || !word(u, V8_WASM_MARKER))
		return FRAME_MARKED;
	if (marker == word(u, V8_TO_JS_MARKER))
		return FRAME_TO_JS;
	if (marker == word(u, V8_TO_WASM_MARKER))
		return FRAME_TO_WASM;
	if (marker != word(u, V8_WASM_MARKER))
		return FRAME_MARKED;
	u->scratch[TEXT] = u->sp > u->fp - 16 ? 0 : next;
	return is_object(u->scratch[TEXT]) ? FRAME_WASM : FRAME_PARTIAL;
}

/* Returns the kind of the frame at fp. */
static int look_at_frame(struct fusee_unwind *u, __u32 unused)
{
	__u64 slots[2]; /* function, context */
	struct near *n = near(u);

	(void)unused;
	if (u->sp > u->fp - 8)
		return FRAME_PARTIAL;
	if (!n || AT(u, &slots, u->fp - 16))
		return FRAME_UNKNOWN;
	if (!(slots[1] & TAG))
		return look_at_marker(u, slots[1], slots[0]);
	if (u->sp > u->fp - 16)
		return FRAME_PARTIAL;
	n->function = slots[0];
	return is_object(slots[1]) ? FRAME_FUNCTION : FRAME_UNKNOWN;
}
FUSEE_PART(fusee_v8_look_at_frame, look_at_frame)

enum { NO_FUNCTION, SHARED_FOUND, SHARED_KNOWN };

/* SHARED becomes that of n->function. SHARED_KNOWN: KEY is its key, and all of it was emitted. */
static int find_shared(struct fusee_unwind *u, __u32 unused)
{
	const struct fusee_note *k;
	struct near *n = near(u);
	__u64 function;
	int type;

	(void)unused;
	if (!n)
		return NO_FUNCTION;
	function = n->function;
	k = known_function(u, n, function);
	if (k) {
		u->scratch[SHARED] = k->word[KNOWN_SHARED];
		u->scratch[KEY] = k->word[KNOWN_KEY];
		return SHARED_KNOWN;
	}
	type = type_of(u, &function);
	if (type < (int)word(u, V8_FIRST_FUNCTION) || type > (int)word(u, V8_LAST_FUNCTION) ||
	    AT(u, &u->scratch[SHARED], field(function, word(u, V8_FUNCTION_SHARED))))
		return NO_FUNCTION;
	return SHARED_FOUND;
}
FUSEE_PART(fusee_v8_find_shared, find_shared)

/* Emits what is not yet known of CODE, which look_at_code() has found to be this. 1: that was
 * all; 0: it may have more later; -1: there is no room. */
FUSEE_FN int emit_unknown_code(struct fusee_unwind *u, int is)
{
	int lasts = 1;

	if ((is == CODE_NEW && emit_code(u)) || (is == CODE_BASELINE && emit_baseline(u)))
		return -1;
	if (is == CODE_BASELINE) /* V8 may make the positions of its bytecode later */
		lasts = fusee_emitted(u, V8_POSITIONS, u->scratch[KEY]) &&
			fusee_emitted(u, V8_POSITIONS + V8_TABLE_BYTECODE * V8_PARTS,
				      u->scratch[KEY]);
	u->scratch[KEY] = u->scratch[CODE_KEY];
	return emit_positions(u, u->scratch[CODE], word(u, V8_CODE_POSITIONS)) ? -1 : lasts;
}
/* Emits the function of SHARED if that is needed, and notes it. 0, or -1: there is no room. */
FUSEE_FN int note_or_emit(struct fusee_unwind *u, int shared, int is_new)
{
	if (shared == SHARED_KNOWN)
		return 0;
	if (is_new && emit_function(u))
		return -1;
	FUSEE_CALL(fusee_v8_note_function, u, 0);
	return 0;
}

/* Pushes the frame of the function of SHARED, at offset `at` of CODE; offset: of its bytecode. What
 * CODE is, or -1. */
FUSEE_FN int push_at(struct fusee_unwind *u, int at, int offset)
{
	/* what called a builtin need not be a call that has a place */
	__u64 exact = is_exact(u) || u->file ? V8_IS_EXACT : 0;
	int is = -1, has = -1;

	if (at >= 0)
		is = FUSEE_CALL(fusee_v8_look_at_code, u, (__u32)at);
	if (is >= 0 && is != CODE_BASELINE && (u->file || !exact))
		has = knows_place(u, (__u32)at + 1);
	if (has == 1)
		exact = 0;
	if (is >= 0 && has)
		fusee_push4(u, u->scratch[KEY],
			    V8_IS_CODE | exact | (is == CODE_BASELINE ? V8_IS_BASELINE : 0) |
				    (__u32)at,
			    u->scratch[CODE_KEY], 0, 0);
	else
		fusee_push(u, u->scratch[KEY], (__u32)offset);
	return is;
}

/* Pushes the frame of n->function, and emits what is not yet known of it. -1: it is no function. */
FUSEE_FN int push_function(struct fusee_unwind *u)
{
	int shared = FUSEE_CALL(fusee_v8_find_shared, u, 0), is_new = 0, offset = -1, at = -1, is;
	struct near *n = near(u);
	int is_call = !u->file && !is_exact(u), lasts = 0;

	if (!n || shared == NO_FUNCTION)
		return -1;
	if (shared == SHARED_FOUND)
		is_new = FUSEE_CALL(fusee_v8_find_function, u, 0);
	if (is_new < 0)
		return 0;
	/* Interpreted frames are in a builtin, so in the file. Code that has replaced an
	 * interpreted loop still has a frame that looks like them. */
	if (u->file) {
		offset = FUSEE_CALL(fusee_v8_bytecode_offset, u, 0);
		if (offset < 0)
			at = find_calling_code(u);
	} else {
		n->instruction = is_exact(u) ? u->pc : u->pc - 1;
		at = FUSEE_CALL(fusee_v8_find_code, u, 0);
		/* before a function has made its frame, fp is its caller's */
		if (at >= 0 && is_exact(u) && FUSEE_CALL(fusee_v8_is_of_frame, u, 0) != 1)
			at = -1;
	}
	is = push_at(u, at, offset);
	if (note_or_emit(u, shared, is_new))
		return 0;
	if (is >= 0)
		lasts = emit_unknown_code(u, is);
	else if (offset >= 0 &&
		 !emit_positions(u, u->scratch[BYTECODE], word(u, V8_BYTECODE_POSITIONS)))
		note_bytecode(u, n);
	if (is_call && lasts >= 0)
		FUSEE_CALL(fusee_v8_note_call, u, (__u32)lasts);
	return 0;
}

/* Steps one frame. */
FUSEE_FN int step_frame(struct fusee_unwind *u)
{
	__u64 saved[2];
	int frame;

	if (is_exact(u) && FUSEE_CALL(fusee_v8_leave_bare, u, 0) == 1)
		return FUSEE_NEXT;
	if (u->flags & FUSEE_FP_LOST || u->fp & 7 || u->fp - u->sp > FARTHEST)
		return fusee_stop(u, V8_NO_FRAME);
	frame = FUSEE_CALL(fusee_v8_look_at_frame, u, 0);
	if (frame == FRAME_UNKNOWN || (frame == FRAME_FUNCTION && push_function(u)))
		return FUSEE_NATIVE_TOO;
	if (frame == FRAME_WASM)
		push_wasm(u);
	if (frame == FRAME_TO_JS)
		fusee_push(u, 0, V8_IS_TO_JS);
	if (frame == FRAME_TO_WASM)
		fusee_push(u, 0, V8_IS_TO_WASM);
	if (AT(u, &saved, u->fp))
		return fusee_stop(u, V8_UNREADABLE);
	to_caller(u, saved[1], u->fp + 16);
	u->fp = saved[0];
	return FUSEE_NEXT;
}

#define MORE_FRAMES 32u /* of one call */

static int v8_step(struct fusee_unwind *u)
{
	int r = -1;

	u->error = 0;
	if (u->slab_words != V8_WORDS ||
	    !u->tls) /* over a copied stack no other memory can be read */
		return FUSEE_PASS;
	if (!is_exact(u))
		r = FUSEE_CALL(fusee_v8_known, u, 0);
	if (r < 0)
		r = step_frame(u);
	for (__u32 i = 0; i < MORE_FRAMES && r == FUSEE_NEXT; i++) {
		if (!fusee_go_on(u, FUSEE_NEXT))
			return r;
		r = FUSEE_CALL(fusee_v8_known, u, 0);
	}
	return r < 0 ? FUSEE_AGAIN : r;
}
FUSEE_LANGUAGE_STEP(v8, v8_step);

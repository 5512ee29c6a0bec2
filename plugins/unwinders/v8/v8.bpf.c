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
#include "state.h"
#include "wasm.h"

#define FARTHEST (1ull << 21) /* the most bytes of a frame */

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
	FRAME_PARTIAL,  /* its slots are not yet pushed, or already popped */
	FRAME_MARKED,   /* it has a number, its type, in place of a context */
	FRAME_FUNCTION, /* of a function of JavaScript; SHARED is set */
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
	int type;

	(void)unused;
	if (u->sp > u->fp - 8)
		return FRAME_PARTIAL;
	if (AT(u, &slots, u->fp - 16))
		return FRAME_UNKNOWN;
	if (!(slots[1] & TAG))
		return look_at_marker(u, slots[1], slots[0]);
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

/* Emits what is not yet known of CODE, which look_at_code() has found to be this. */
FUSEE_FN void emit_unknown_code(struct fusee_unwind *u, int is)
{
	if ((is == CODE_NEW && emit_code(u)) || (is == CODE_BASELINE && emit_baseline(u)))
		return;
	u->scratch[KEY] = u->scratch[CODE_KEY];
	emit_positions(u, u->scratch[CODE], word(u, V8_CODE_POSITIONS));
}

/* Pushes the frame of the function of SHARED, if that can be read, and emits what is not yet known
 * of it. */
FUSEE_FN void push_function(struct fusee_unwind *u)
{
	__u64 exact = is_exact(u) ? V8_IS_EXACT : 0;
	struct near *n = near(u);
	int found = FUSEE_CALL(fusee_v8_find_function, u, 0), offset = -1, at = -1, is = -1;
	int has = -1;

	if (found < 0 || !n)
		return;
	/* Interpreted frames are in a builtin, so in the file. Code that has replaced an
	 * interpreted loop still has a frame that looks like them. */
	if (u->file) {
		offset = FUSEE_CALL(fusee_v8_bytecode_offset, u, 0);
		if (offset < 0)
			at = find_calling_code(u);
		/* what called it need not be a call that has a place */
		exact = V8_IS_EXACT;
	} else {
		n->instruction = exact ? u->pc : u->pc - 1;
		at = FUSEE_CALL(fusee_v8_find_code, u, 0);
	}
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
	if (found && emit_function(u))
		return;
	if (is >= 0)
		emit_unknown_code(u, is);
	else if (offset >= 0)
		emit_positions(u, u->scratch[BYTECODE], word(u, V8_BYTECODE_POSITIONS));
}

static int v8_step(struct fusee_unwind *u)
{
	__u64 saved[2];
	int frame;

	u->error = 0;
	if (u->slab_words != V8_WORDS ||
	    !u->tls) /* over a copied stack no other memory can be read */
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
FUSEE_LANGUAGE_STEP(v8, v8_step);

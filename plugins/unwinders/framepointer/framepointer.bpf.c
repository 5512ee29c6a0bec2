/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The step of the framepointer unwinder, for code without a table: JIT code and assembly. On x86-64
 * rbp points to the saved rbp of the caller, and the return address is above it.
 *
 * The interrupted function may have no frame: before its prologue, in its epilogue, or ever. The
 * instructions around pc show the first two cases. In all other cases, and in all callers, what rbp
 * leads to is marked as a guess: a function that does not set rbp hands its caller's on, and then
 * that caller is missing. (A call instruction before the return address would be no proof:
 * HotSpot's interpreter pushes addresses that are not of calls.)
 */
#include <fusee/unwinder.bpf.h>

#include "reasons.h"

#define FARTHEST (1ull << 20) /* a frame of more than 1 MiB is no frame */
#define BEFORE 5
#define CODE 13

enum place {
	UNKNOWN,     /* rbp is assumed to be this frame's: a guess */
	MAYBE_ENTRY, /* looks like a function's first instruction */
	NO_FRAME,    /* return address at sp */
	PUSHED,      /* caller's rbp at sp, return address above */
	IN_FRAME,    /* rbp is this frame's */
};

/* mov %rsp,%rbp in either encoding */
FUSEE_FN int is_mov(const __u8 *p)
{
	return p[0] == 0x48 && ((p[1] == 0x89 && p[2] == 0xe5) || (p[1] == 0x8b && p[2] == 0xec));
}

/* ret, ret n, and ret with a prefix without effect */
FUSEE_FN int is_ret(const __u8 *p)
{
	return p[0] == 0xc3 || p[0] == 0xc2 || ((p[0] == 0xf3 || p[0] == 0xf2) && p[1] == 0xc3);
}

/* Whether p[1] is push %rbp. With a REX prefix in p[0] it is push %r13. */
FUSEE_FN int is_push(const __u8 *p)
{
	return p[1] == 0x55 && (p[0] & 0xf0) != 0x40;
}

/* Finds by the instructions around the interrupted pc where in its function it is. */
FUSEE_FN enum place look_at_code(struct fusee_unwind *u)
{
	__u8 code[CODE] = {0}, *at = code + BEFORE;

	/* the page before pc may be missing, or the page behind it */
	if (fusee_read(u, code, CODE, u->pc - BEFORE)) {
		__builtin_memset(code, 0, CODE);
		if (fusee_read(u, at, 4, u->pc))
			return UNKNOWN;
	}
	if (is_ret(at))
		return NO_FRAME;
	if (at[0] == 0x5d && is_ret(at + 1)) /* pop %rbp; ret */
		return PUSHED;
	if (at[0] == 0xc9 || (is_push(code) && is_mov(code + 2))) /* leave, or a frame just made */
		return IN_FRAME;
	/* Behind a system call the next instruction may be another function's. */
	if (!(u->flags & FUSEE_PC_EXACT))
		return UNKNOWN;
	if (is_push(code + 3) && is_mov(at))
		return PUSHED;
	if (at[0] == 0x55) /* push %rbp */
		return is_mov(at + 1) ? NO_FRAME : MAYBE_ENTRY;
	if (at[0] == 0xf3 && at[1] == 0x0f && at[2] == 0x1e && at[3] == 0xfa) /* endbr64 */
		return at[4] == 0x55 ? NO_FRAME : MAYBE_ENTRY;
	return UNKNOWN;
}

FUSEE_FN int set_caller(struct fusee_unwind *u, __u64 sp, __u64 pc, __u64 fp, int guessed)
{
	if (!pc)
		return fusee_stop(u, FRAMEPOINTER_REASON_END);
	u->pc = pc;
	u->sp = sp;
	u->fp = fp;
	u->valid_regs = 0;
	u->flags &= ~(__u32)(FUSEE_PC_EXACT | FUSEE_FP_LOST | FUSEE_SP_UNSURE);
	if (guessed)
		u->flags |= FUSEE_GUESSED;
	return FUSEE_NEXT;
}

static int framepointer_step(struct fusee_unwind *u)
{
	enum place place = UNKNOWN;
	__u64 frame[2]; /* caller's rbp, return address */

	u->error = 0;
	if (u->flags & FUSEE_FP_LOST)
		return fusee_stop(u, FRAMEPOINTER_REASON_LOST);
	if (u->flags & (FUSEE_PC_EXACT | FUSEE_FIRST))
		place = look_at_code(u);
	if (place == NO_FRAME || place == MAYBE_ENTRY) {
		if (fusee_read(u, frame, 8, u->sp))
			return fusee_stop(u, FRAMEPOINTER_REASON_UNREADABLE);
		return set_caller(u, u->sp + 8, frame[0], u->fp, place == MAYBE_ENTRY);
	}
	if (place == PUSHED) {
		if (fusee_read(u, frame, 16, u->sp))
			return fusee_stop(u, FRAMEPOINTER_REASON_UNREADABLE);
		return set_caller(u, u->sp + 16, frame[1], frame[0], 0);
	}
	if (!u->fp)
		return fusee_stop(u, FRAMEPOINTER_REASON_END);
	if (u->fp & 7 || u->fp < u->sp || u->fp - u->sp > FARTHEST)
		return fusee_stop(u, FRAMEPOINTER_REASON_NOT_A_FRAME);
	if (fusee_read(u, frame, 16, u->fp))
		return fusee_stop(u, FRAMEPOINTER_REASON_UNREADABLE);
	if (set_caller(u, u->fp + 16, frame[1], frame[0], place == UNKNOWN) != FUSEE_NEXT)
		return FUSEE_STOP;
	u->flags |= FUSEE_SP_UNSURE;
	return FUSEE_NEXT;
}

FUSEE_NATIVE_STEP(framepointer, framepointer_step);

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * One step by frame pointer, for code that has no table: JIT code and assembly. x86-64: rbp points
 * to the caller's rbp, and the return address stands above it.
 *
 * The interrupted function may not have its frame yet, or no more, or never: its code bytes around
 * pc tell the first two; else the caller that rbp leads to is marked as a guess (its own caller may
 * be missing).
 */
#include <fusee/unwinder.bpf.h>

#include "reasons.h"

#define FARTHEST (1ull << 20) /* a frame of more than 1 MiB is no frame */

enum place { UNKNOWN, NO_FRAME, PUSHED, IN_FRAME };

FUSEE_FN int stop(struct fusee_unwind *u, __u32 reason)
{
	u->error = reason;
	return FUSEE_STOP;
}

/* Where in its function the interrupted pc is, by the instructions around it. */
FUSEE_FN enum place look_at_code(struct fusee_unwind *u)
{
	__u8 at[4], before[4] = {0};
	__u32 n;

	if (fusee_read(u, at, 4, u->pc))
		return UNKNOWN;
	if (at[0] == 0xf3 && at[1] == 0x0f && at[2] == 0x1e && at[3] == 0xfa) /* endbr64 */
		return NO_FRAME;
	if (at[0] == 0x55) /* push %rbp: not yet executed */
		return NO_FRAME;
	if (at[0] == 0xc3 || at[0] == 0xc2) /* ret */
		return NO_FRAME;
	if (at[0] == 0x48 && ((at[1] == 0x89 && at[2] == 0xe5) || (at[1] == 0x8b && at[2] == 0xec)))
		n = 1; /* mov %rsp,%rbp: behind push %rbp */
	else
		n = 0;
	if (n && !fusee_read(u, before, 1, u->pc - 1) && before[0] == 0x55)
		return PUSHED;
	/* pop %rbp is the last before ret; leave has undone the frame too. */
	if (at[0] == 0x5d && (at[1] == 0xc3 || at[1] == 0xc2))
		return PUSHED;
	if (at[0] == 0xc9) /* leave */
		return IN_FRAME;
	if (!fusee_read(u, before, 4, u->pc - 4) && before[0] == 0x55 && before[1] == 0x48 &&
	    ((before[2] == 0x89 && before[3] == 0xe5) || (before[2] == 0x8b && before[3] == 0xec)))
		return IN_FRAME;
	return UNKNOWN;
}

FUSEE_FN int arrive(struct fusee_unwind *u, __u64 sp, __u64 pc, __u64 fp, int guessed)
{
	if (!pc)
		return stop(u, FRAMEPOINTER_REASON_END);
	u->pc = pc;
	u->sp = sp;
	u->fp = fp;
	u->valid_regs = 0;
	u->flags &= ~(__u32)(FUSEE_PC_EXACT | FUSEE_FP_LOST);
	if (guessed)
		u->flags |= FUSEE_GUESSED;
	return FUSEE_NEXT;
}

static int framepointer_step(struct fusee_unwind *u)
{
	enum place place = u->flags & FUSEE_PC_EXACT ? look_at_code(u) : IN_FRAME;
	__u64 frame[2]; /* caller's rbp, return address */

	u->error = 0;
	if (u->flags & FUSEE_FP_LOST)
		return stop(u, FRAMEPOINTER_REASON_LOST);
	if (place == NO_FRAME) {
		if (fusee_read(u, frame, 8, u->sp))
			return stop(u, FRAMEPOINTER_REASON_UNREADABLE);
		return arrive(u, u->sp + 8, frame[0], u->fp, 0);
	}
	if (place == PUSHED) {
		if (fusee_read(u, frame, 16, u->sp))
			return stop(u, FRAMEPOINTER_REASON_UNREADABLE);
		return arrive(u, u->sp + 16, frame[1], frame[0], 0);
	}
	if (!u->fp)
		return stop(u, FRAMEPOINTER_REASON_END);
	if (u->fp & 7 || u->fp < u->sp || u->fp - u->sp > FARTHEST)
		return stop(u, FRAMEPOINTER_REASON_NOT_A_FRAME);
	if (fusee_read(u, frame, 16, u->fp))
		return stop(u, FRAMEPOINTER_REASON_UNREADABLE);
	return arrive(u, u->fp + 16, frame[1], frame[0], place == UNKNOWN);
}

FUSEE_NATIVE_STEP(framepointer, framepointer_step);

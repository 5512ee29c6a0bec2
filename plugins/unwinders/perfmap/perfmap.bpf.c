/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Steps for code of perf maps that the frame pointer unwinder cannot step. Everything else is
 * passed on to it.
 *
 * CPython's trampolines (-X perf), a copy for each Python function, keep no frame pointer:
 *
 *	sub $8,%rsp; call *%rcx; add $8,%rsp; ret
 *
 * Erlang processes have stacks of their own, on which its compiled code keeps frame pointers; the
 * first frame of each has none above it, and the scheduler that runs the process is not there.
 */
#include <fusee/unwinder.bpf.h>

#include "reasons.h"

#define TRAMPOLINE 11
#define CALLED 6 /* offset of the instruction behind the call */
#define FARTHEST (1ull << 20)
/* callee-saved registers except rbp */
#define KEPT                                                                     \
	(1ull << FUSEE_X86_RBX | 1ull << FUSEE_X86_R12 | 1ull << FUSEE_X86_R13 | \
	 1ull << FUSEE_X86_R14 | 1ull << FUSEE_X86_R15)

/* 1: pc is at this offset of a trampoline; 0: it is not; -1: the code cannot be read. */
FUSEE_FN int is_at(struct fusee_unwind *u, __u64 offset)
{
	__u8 c[TRAMPOLINE];

	if (fusee_read(u, c, TRAMPOLINE, u->pc - offset))
		return -1;
	return c[0] == 0x48 && c[1] == 0x83 && c[2] == 0xec && c[3] == 0x08 && /* sub $8,%rsp */
	       c[4] == 0xff && c[5] == 0xd1 &&                                 /* call *%rcx */
	       c[6] == 0x48 && c[7] == 0x83 && c[8] == 0xc4 && c[9] == 0x08 && /* add $8,%rsp */
	       c[10] == 0xc3;                                                  /* ret */
}

/* Steps to the caller, whose return address is at sp + distance. Callee-saved registers stay. */
FUSEE_FN int step_by_sp(struct fusee_unwind *u, __u64 distance)
{
	__u64 pc;

	if (fusee_read(u, &pc, 8, u->sp + distance))
		return fusee_stop(u, PERFMAP_REASON_UNREADABLE);
	u->pc = pc;
	u->sp += distance + 8;
	u->valid_regs &= KEPT;
	u->flags &= ~(__u32)FUSEE_PC_EXACT;
	return FUSEE_NEXT;
}

FUSEE_FN int python(struct fusee_unwind *u)
{
	int called = is_at(u, CALLED);

	/* also if the code cannot be read any more: a return address is always behind the call */
	if (called > 0 || (called < 0 && !(u->flags & FUSEE_PC_EXACT)))
		return step_by_sp(u, 8);
	if (!(u->flags & FUSEE_PC_EXACT))
		return FUSEE_PASS;
	if (is_at(u, 4) > 0)
		return step_by_sp(u, 8);
	if (is_at(u, 0) > 0 || is_at(u, 10) > 0)
		return step_by_sp(u, 0);
	return FUSEE_PASS;
}

/* A trampoline calls the interpreter to run one function. If the Python unwinder has pushed a
 * function since the last trampoline, it is the trampoline's function, with its line, so the
 * trampoline's frame is omitted. */
FUSEE_FN int once(struct fusee_unwind *u, int next)
{
	__u64 shown = u->scratch[0];

	if (next != FUSEE_NEXT)
		return next;
	u->scratch[0] = u->stored;
	return shown == u->stored ? FUSEE_NEXT : FUSEE_NEXT_OMIT;
}

/* Ends the stack where the chain of frame pointers ends. */
FUSEE_FN int erlang(struct fusee_unwind *u)
{
	__u64 frame[2];

	if (u->flags & (FUSEE_PC_EXACT | FUSEE_FIRST))
		return FUSEE_PASS;
	if (u->flags & FUSEE_FP_LOST || !u->fp || u->fp & 7 || u->fp < u->sp ||
	    u->fp - u->sp > FARTHEST || fusee_read(u, frame, 16, u->fp) || !frame[1])
		return fusee_stop(u, PERFMAP_REASON_ERLANG);
	return FUSEE_PASS;
}

static int perfmap_step(struct fusee_unwind *u)
{
	u->error = 0;
	if (u->claim_arg == PERFMAP_PYTHON)
		return once(u, python(u));
	if (u->claim_arg == PERFMAP_ERLANG)
		return erlang(u);
	return FUSEE_PASS;
}

FUSEE_LANGUAGE_STEP(perfmap, perfmap_step);

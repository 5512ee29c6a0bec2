/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * fusee/trampoline.bpf.h - the step of CPython's trampolines (-X perf, -X perf_jit), a copy for
 *each Python function, which keep no frame pointer. For unwinders that name them:
 *
 *	sub $8,%rsp; call *%rcx; add $8,%rsp; ret
 */
#ifndef FUSEE_TRAMPOLINE_BPF_H
#define FUSEE_TRAMPOLINE_BPF_H

#include <fusee/unwinder.bpf.h>

#define FUSEE_TRAMPOLINE 11
#define FUSEE_TRAMPOLINE_CALLED 6 /* offset of the instruction behind the call */
/* callee-saved registers except rbp */
#define FUSEE_TRAMPOLINE_KEPT                                                    \
	(1ull << FUSEE_X86_RBX | 1ull << FUSEE_X86_R12 | 1ull << FUSEE_X86_R13 | \
	 1ull << FUSEE_X86_R14 | 1ull << FUSEE_X86_R15)

/* 1: pc is at this offset of a trampoline; 0: it is not; -1: the code cannot be read. */
FUSEE_FN int fusee_trampoline_at(struct fusee_unwind *u, __u64 offset)
{
	__u8 c[FUSEE_TRAMPOLINE];

	if (fusee_read(u, c, FUSEE_TRAMPOLINE, u->pc - offset))
		return -1;
	return c[0] == 0x48 && c[1] == 0x83 && c[2] == 0xec && c[3] == 0x08 && /* sub $8,%rsp */
	       c[4] == 0xff && c[5] == 0xd1 &&                                 /* call *%rcx */
	       c[6] == 0x48 && c[7] == 0x83 && c[8] == 0xc4 && c[9] == 0x08 && /* add $8,%rsp */
	       c[10] == 0xc3;                                                  /* ret */
}

/* Steps to the caller, whose return address is at sp + distance. Callee-saved registers stay. */
FUSEE_FN int fusee_trampoline_by_sp(struct fusee_unwind *u, __u64 distance, __u32 unreadable)
{
	__u64 pc;

	if (fusee_read(u, &pc, 8, u->sp + distance))
		return fusee_stop(u, unreadable);
	u->pc = pc;
	u->sp += distance + 8;
	u->valid_regs &= FUSEE_TRAMPOLINE_KEPT;
	u->flags &= ~(__u32)FUSEE_PC_EXACT;
	return FUSEE_NEXT;
}

FUSEE_FN int fusee_trampoline_by_place(struct fusee_unwind *u, __u32 unreadable)
{
	int called = fusee_trampoline_at(u, FUSEE_TRAMPOLINE_CALLED);

	/* also if the code cannot be read any more: a return address is always behind the call */
	if (called > 0 || (called < 0 && !(u->flags & FUSEE_PC_EXACT)))
		return fusee_trampoline_by_sp(u, 8, unreadable);
	if (!(u->flags & FUSEE_PC_EXACT))
		return FUSEE_PASS;
	if (fusee_trampoline_at(u, 4) > 0)
		return fusee_trampoline_by_sp(u, 8, unreadable);
	if (fusee_trampoline_at(u, 0) > 0 || fusee_trampoline_at(u, 10) > 0)
		return fusee_trampoline_by_sp(u, 0, unreadable);
	return FUSEE_PASS;
}

/* A trampoline calls the interpreter to run one function. If the Python unwinder has pushed a
 * function since the last trampoline, it is the trampoline's function, with its line, so the
 * trampoline's frame is omitted. unreadable: the reason if the stack cannot be read. */
FUSEE_FN int fusee_trampoline_step(struct fusee_unwind *u, __u32 unreadable)
{
	int next = fusee_trampoline_by_place(u, unreadable);
	__u64 shown = u->scratch[0];

	if (next != FUSEE_NEXT)
		return next;
	u->scratch[0] = u->stored;
	return shown == u->stored ? FUSEE_NEXT : FUSEE_NEXT_OMIT;
}
#endif

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Code without a frame of its own, or that does not say how large it is: where interpreted methods
 * begin and end, adapters between these and compiled methods, stubs of C1. A part of the step:
 * hotspot.bpf.c includes it.
 */
#ifndef HOTSPOT_BARE_H
#define HOTSPOT_BARE_H

#include "blob.h"
#include "code.h"
#include "emit.h"
#include "state.h"

/* Returns the caller's sp, which r13 has where a method begins, and rbx where it returns. 0:
 * neither register has an address near above the sp. */
FUSEE_FN __u64 sender_sp(const struct fusee_unwind *u)
{
	if (u->valid_regs >> FUSEE_X86_R13 & 1 && u->regs[FUSEE_X86_R13] - u->sp < FARTHEST)
		return u->regs[FUSEE_X86_R13];
	if (u->valid_regs >> FUSEE_X86_RBX & 1 && u->regs[FUSEE_X86_RBX] - u->sp < FARTHEST)
		return u->regs[FUSEE_X86_RBX];
	return 0;
}

/* Steps from code that was interrupted without a frame: at the beginning or end of a method, or in
 * a stub that makes none. The return address is on top of the stack or in rax. `moved`: the code
 * may have moved it away from the caller's sp, which is in a register then. 1: the state is the
 * caller's; 0: no return address was found. */
static int leave_bare(struct fusee_unwind *u, __u32 moved)
{
	__u64 sender = moved ? sender_sp(u) : 0, pc, top;

	if (!AT(u, &pc, u->sp) && is_behind_call(u, pc)) {
		to_caller(u, pc, sender > u->sp + 8 ? sender : u->sp + 8);
		return 1;
	}
	pc = u->regs[FUSEE_X86_RAX];
	if (u->valid_regs >> FUSEE_X86_RAX & 1 && sender > u->sp && is_behind_call(u, pc)) {
		/* the code may have put it in both, and the stack's pointer in r13 */
		if (!AT(u, &top, sender) && top == pc)
			sender += 8;
		to_caller(u, pc, sender);
		return 1;
	}
	return 0;
}
FUSEE_PART(fusee_hotspot_leave_bare, leave_bare)

#define IS_FLUSH TEXT8('f', 'l', 'u', 's', 'h', '_', 'i', 'c')
#define IS_JNI_GETTER TEXT8('j', 'n', 'i', '_', 'f', 'a', 's', 't')
#define IS_ADAPTER TEXT8('I', '2', 'C', '/', 'C', '2', 'I', ' ')

/* mov %rsp,%r13, which saves the caller's sp */
FUSEE_FN int is_note(const __u8 *c)
{
	return (c[0] == 0x4c && c[1] == 0x8b && c[2] == 0xec) ||
	       (c[0] == 0x49 && c[1] == 0x89 && c[2] == 0xe5);
}

/* Is the adapter's mov %rsp,%r13 right ahead? */
FUSEE_FN int is_before_note(struct fusee_unwind *u)
{
	struct near *n = near(u);

	if (!n || fusee_read(u, n->code, CODE_BYTES, u->pc))
		return 1;
	for (__u32 i = 0; i < CODE_BYTES - CODE_BEFORE - 2; i++)
		if (is_note(n->code + i))
			return 1;
	return 0;
}

#define NOTE_UNKNOWN 2
#define REACH (sizeof(((struct near *)0)->code) - 3)

/* Has the adapter noted the caller's sp in r13? Before that r13 has the sp of an earlier call. The
 * part to compiled code comes first, and ends with jmp *%r11; the other part may ask a lot before
 * its own note. */
FUSEE_FN int has_noted(struct fusee_unwind *u)
{
	struct near *n = near(u);
	__u32 noted = NOTE_UNKNOWN;

	if (!n || fusee_read(u, n->code, sizeof(n->code), u->pc - REACH))
		return 0;
	for (__u32 i = 0; i < REACH - 2; i++) {
		const __u8 *c = n->code + i;

		if (is_note(c))
			noted = 1;
		else if (c[0] == 0x41 && c[1] == 0xff && c[2] == 0xe3)
			noted = 0;
		noted = forget(n, 0, noted);
	}
	return noted == NOTE_UNKNOWN ? !is_before_note(u) : noted == 1;
}

/* An adapter to compiled code: r13 is the interpreter's sp, above the return address, which leads
 * to the interpreter's code behind no call. It is in rax while it is moved. 1: the state is the
 * caller's. */
FUSEE_FN int leave_moved(struct fusee_unwind *u)
{
	__u64 sender = u->regs[FUSEE_X86_R13], pc, rax = u->regs[FUSEE_X86_RAX];

	if (!(u->valid_regs >> FUSEE_X86_R13 & 1) || sender & 7 || sender < u->sp + 8 ||
	    sender - u->sp > FARTHEST || AT(u, &pc, u->sp))
		return 0;
	if (sender != u->sp + 8 && is_java_code(u, rax))
		pc = rax;
	if (!is_java_code(u, pc))
		return 0;
	to_caller(u, pc, sender);
	return 1;
}

/* An interrupted adapter between the interpreter and compiled code. 1: the state is the caller's.
 */
static int leave_adapter(struct fusee_unwind *u, __u32 unused)
{
	int noted = has_noted(u);

	(void)unused;
	if (FUSEE_CALL(fusee_hotspot_leave_bare, u, noted) == 1)
		return 1;
	return noted && leave_moved(u);
}
FUSEE_PART(fusee_hotspot_leave_adapter, leave_adapter)

#define MOST_PUSHED 8 /* words that a stub without a frame keeps above its return address */

/* How many registers has a stub pushed that begins with so many pushes, and ends with as many pops?
 * 0: its first instructions are others. */
FUSEE_FN __u32 pushed_by(struct fusee_unwind *u, __u64 code)
{
	struct near *n = near(u);
	__u32 pushes = 0, pops = 0;

	if (!n || fusee_read(u, n->code, MOST_PUSHED, code) ||
	    fusee_read(u, n->code + MOST_PUSHED, MOST_PUSHED, u->pc))
		return 0;
	while (pushes < MOST_PUSHED - 1 && is_push(n->code[pushes]))
		pushes++;
	pushes = forget(n, 0, pushes);
	while (pops < MOST_PUSHED - 1 && (n->code[MOST_PUSHED + pops] & 0xf8) == 0x58)
		pops++;
	if (n->code[MOST_PUSHED + pops] == 0xc3)
		return forget(n, 1, pops);
	return u->pc - code < pushes ? (__u32)(u->pc - code) : pushes;
}

#define STUB_BEGIN 32 /* bytes in which it makes room */
#define STUB_END 48   /* bytes before pc in which it gives that back */

/* How many words has such a stub below what it has pushed, by sub $..,%rsp until
 * lea ..(%rsp),%rsp? */
FUSEE_FN __u32 room_below(struct fusee_unwind *u, __u64 code)
{
	struct near *n = near(u);
	__u32 room = 0, back = 0;

	if (!n || fusee_read(u, n->code, STUB_BEGIN, code) ||
	    fusee_read(u, n->code + STUB_BEGIN, STUB_END, u->pc - STUB_END))
		return 0;
	for (__u32 i = 0; i < STUB_BEGIN - 3; i++) {
		const __u8 *c = n->code + i;

		if (c[0] == 0x48 && c[1] == 0x83 && c[2] == 0xec && u->pc - code >= i + 4)
			room = c[3];
	}
	room = forget(n, 0, room);
	for (__u32 i = 0; i <= STUB_END - 5; i++) {
		const __u8 *c = n->code + STUB_BEGIN + i;

		if (c[0] == 0x48 && c[1] == 0x8d && c[2] == 0x64 && c[3] == 0x24 && c[4] == room)
			back = 1;
	}
	return forget(n, 1, back) || room & 7 || room >= 128 ? 0 : room / 8;
}

/* The stub's return address is this, right below `sp`. C1 has pushed arguments, which it pops
 * behind the call: where it would look for its own caller there may be an old return address. */
FUSEE_FN int to_caller_of_stub(struct fusee_unwind *u, __u64 pc, __u64 sp)
{
	struct near *n = near(u);

	if (n && !fusee_read(u, n->code, 8, pc))
		sp += (__u32)popped(n->code);
	return to_caller(u, pc, sp) == FUSEE_NEXT;
}

/* Stubs that say nothing of their frame, as those of C1: they keep a frame pointer, which their
 * first instructions show, or have pushed a few registers, in which there may be old return
 * addresses. 1: the state is the caller's. */
static int leave_unsized(struct fusee_unwind *u, __u32 unused)
{
	int e = is_exact(u) ? FUSEE_CALL(fusee_hotspot_edge, u, 0) : EDGE_NONE;
	struct near *n = near(u);
	__u64 code = 0, pc, frame[2];
	__u32 first, at;

	(void)unused;
	pc = u->regs[FUSEE_X86_RDX];
	if (e == EDGE_POPPED && u->valid_regs >> FUSEE_X86_RDX & 1 && is_behind_call(u, pc))
		return to_caller(u, pc, u->sp) == FUSEE_NEXT;
	if (e == EDGE_SAVED && !AT(u, &pc, u->sp + 8) && is_behind_call(u, pc))
		return to_caller_of_frame(u, u->sp + 16) == FUSEE_NEXT;
	/* push %rbp; mov %rsp,%rbp */
	if (n && !blob_code(u, n, &code) && !AT(u, &first, code) &&
	    (first == 0xec8b4855 || first == 0xe5894855) && e != EDGE_RETURN &&
	    !(u->flags & FUSEE_FP_LOST || u->fp & 7) && u->fp - u->sp < FARTHEST &&
	    !AT(u, &frame, u->fp) && is_behind_call(u, frame[1]))
		return to_caller_of_frame(u, u->fp + 16) == FUSEE_NEXT;
	at = is_exact(u) && code ? pushed_by(u, code) : 0;
	if (at && n)
		at = forget(n, 0, at + room_below(u, code));
	if (!at || AT(u, &pc, u->sp + 8 * at) || !is_behind_call(u, pc)) {
		for (at = 0; at < MOST_PUSHED; at++)
			if (!AT(u, &pc, u->sp + 8 * at) && is_behind_call(u, pc))
				break;
		if (at >= MOST_PUSHED)
			return 0;
	}
	if (!n)
		return 0;
	return to_caller_of_stub(u, pc, u->sp + 8ull * forget(n, 0, at) + 8);
}
FUSEE_PART(fusee_hotspot_leave_unsized, leave_unsized)

/* Adapters between the interpreter and compiled code, and other code without frames. */
static int bare(struct fusee_unwind *u, __u32 unused)
{
	__u64 pc;
	int found = 0;

	(void)unused;
	FUSEE_CALL(fusee_hotspot_push_stub, u, 0);
	/* native code calls it, and it pushes nothing */
	if (is_exact(u) && (u->scratch[NAME8] == IS_FLUSH || u->scratch[NAME8] == IS_JNI_GETTER) &&
	    !AT(u, &pc, u->sp))
		return to_caller(u, pc, u->sp + 8);
	if (u->scratch[NAME8] != IS_ADAPTER)
		found = FUSEE_CALL(fusee_hotspot_leave_unsized, u, 0);
	else if (is_exact(u))
		found = FUSEE_CALL(fusee_hotspot_leave_adapter, u, 0);
	return found == 1 ? FUSEE_NEXT : fusee_stop(u, HOTSPOT_NO_FRAME);
}
FUSEE_PART(fusee_hotspot_bare, bare)

/* The stub that a compiled method calls where it begins, if its code may be out of date: between
 * the saved frame pointer and the return address it has pushed -1. 1: the state is the caller's. */
FUSEE_FN int leave_entry_barrier(struct fusee_unwind *u)
{
	__u64 saved[3];

	if (AT(u, &saved, u->fp) || saved[1] != ~0ull || !is_behind_call(u, saved[2]))
		return 0;
	to_caller(u, saved[2], u->fp + 24);
	u->fp = saved[0];
	return 1;
}

#endif

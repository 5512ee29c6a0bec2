/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Frames of interpreted methods, complete or while they are made. A part of the step:
 * hotspot.bpf.c includes it. */
#ifndef HOTSPOT_INTERPRETER_H
#define HOTSPOT_INTERPRETER_H

#include "bare.h"
#include "chunk.h"
#include "classes.h"
#include "emit.h"
#include "known.h"
#include "replaced.h"
#include "state.h"

/* The bci of an interpreted frame, of a method with so many bytes of code. HOTSPOT_NO_BCI: the
 * method is native; -1: this is no interpreted frame. */
FUSEE_FN __s64 bci_in(struct fusee_unwind *u, const struct interpreted *f, __u64 code, __u64 size)
{
	__u64 bcp = address(u, HOTSPOT_ONE_HEAP) ? f->locals : f->bcp;

	if (!size)
		return HOTSPOT_NO_BCI;
	if (is_exact(u) && u->regs[FUSEE_X86_R13] - code < size)
		return (__s64)(u->regs[FUSEE_X86_R13] - code);
	return bcp - code < size ? (__s64)(bcp - code) : -1;
}

/* Sets METHOD to the method of an interpreted frame, whose constants are read, and returns the
 * frame's bci, as bci_in(). */
FUSEE_FN __s64 bci_of(struct fusee_unwind *u, const struct interpreted *f)
{
	struct near *m = near(u);
	unsigned short size;

	u->scratch[METHOD] = f->method;
	if (!m || read_constants(u, m) || CONSTANT(u, m, &size, word(u, HOTSPOT_CONST_CODE_SIZE)))
		return -1;
	return bci_in(u, f, m->constants + word(u, HOTSPOT_CONST_SIZE), size);
}

/* Reads the frame at fp if it can be an interpreted frame. Returns what bci_in() does. If a note
 * has its method, KEY becomes that of the method; otherwise 0. */
FUSEE_FN __s64 read_interpreted(struct fusee_unwind *u, struct near *n)
{
	struct interpreted *f = &n->frame;
	struct fusee_note *k;

	u->scratch[KEY] = 0;
	if (!may_be_interpreted(u) ||
	    fusee_read_stack(u, (__u64 *)f, sizeof(*f) / 8, u->fp - BELOW_FP) ||
	    !leads_to_caller(u, f))
		return -1;
	k = holding_note(u, n, method_key(f->method));
	if (!k)
		return bci_of(u, f);
	u->scratch[KEY] = k->word[METHOD_KEY];
	return bci_in(u, f, k->word[METHOD_CODE], k->word[METHOD_SIZE]);
}

/* Sets KEY to that of METHOD, and notes it. 0 or -1. */
FUSEE_FN int name_and_note(struct fusee_unwind *u, struct near *n)
{
	int r = FUSEE_CALL(fusee_hotspot_name_method, u, 1);

	if (!r)
		note_method(u, n);
	return r < 0 ? r : 0;
}

/* Has the interrupted code itself begun the frame with this return address? Then rax still has the
 * address, or the method, which is in rbx, was pushed too. Before that the ConstMethod's address is
 * in rax (25), and then that of its bytecodes in r13. */
FUSEE_FN int is_begun(struct fusee_unwind *u, __u64 pc)
{
	__u64 rbx = u->regs[FUSEE_X86_RBX], method, constants;

	if (u->regs[FUSEE_X86_RAX] == pc)
		return 1;
	if (u->fp - u->sp >= 24 && !AT(u, &method, u->fp - 24) && method == rbx)
		return 1;
	return u->fp - u->sp >= 8 && u->fp - u->sp < 24 &&
	       !AT(u, &constants, rbx + word(u, HOTSPOT_METHOD_CONST)) &&
	       (u->regs[FUSEE_X86_RAX] == constants ||
		u->regs[FUSEE_X86_R13] == constants + word(u, HOTSPOT_CONST_SIZE));
}

/* Steps from a frame that is being made: rbp is set, its words are not all pushed. Its first word
 * is the caller's sp, which r13 has until that is pushed. 1: the state is the caller's; 0: this is
 * no such frame. */
static int leave_begun(struct fusee_unwind *u, __u32 unused)
{
	__u64 saved[2], sender = sender_sp(u);

	(void)unused;
	if (!is_exact(u) || u->fp & 7 || u->fp - u->sp > sizeof(struct interpreted) ||
	    AT(u, &saved, u->fp) || !is_java_code(u, saved[1]) || !is_begun(u, saved[1]) ||
	    (u->fp - u->sp >= 8 && AT(u, &sender, u->fp - 8)) || sender & 7 || sender < u->fp + 8 ||
	    sender - u->fp > FARTHEST)
		return 0;
	u->fp = saved[0];
	to_caller(u, saved[1], sender > u->sp ? sender : u->sp + 8);
	return 1;
}
FUSEE_PART(fusee_hotspot_leave_begun, leave_begun)

static int interpreted(struct fusee_unwind *u, __u32 unused)
{
	struct near *n = near(u);
	__s64 bci;

	(void)unused;
	if (!n)
		return fusee_stop(u, HOTSPOT_UNREADABLE);
	if (is_exact(u) && FUSEE_CALL(fusee_hotspot_leave_bare, u, 1) == 1) {
		FUSEE_CALL(fusee_hotspot_push_stub, u, 0);
		return FUSEE_NEXT;
	}
	bci = read_interpreted(u, n);
	if (bci < 0) {
		if (FUSEE_CALL(fusee_hotspot_leave_unfilled, u, 0) == 1)
			return FUSEE_NEXT;
		if (FUSEE_CALL(fusee_hotspot_leave_begun, u, 0) != 1)
			return fusee_stop(u, HOTSPOT_NO_INTERPRETED);
		FUSEE_CALL(fusee_hotspot_push_stub, u, 0);
		return FUSEE_NEXT;
	}
	if (!u->scratch[KEY] && name_and_note(u, n))
		return fusee_stop(u, HOTSPOT_UNREADABLE);
	note_interpreter(u);
	fusee_push(u, u->scratch[KEY], (__u64)bci);
	/* a method handle's linker has popped an argument, and has moved the return address up by
	 * that word: to where the caller's sp was */
	if (n->frame.sender_sp == u->fp + 8)
		n->frame.sender_sp += 8;
	u->fp = n->frame.fp;
	return to_caller(u, n->frame.pc, n->frame.sender_sp);
}
FUSEE_PART(fusee_hotspot_interpreted, interpreted)

/* Steps from an interpreted frame that is in a chunk of Java's heap. */
static int interpreted_in_chunk(struct fusee_unwind *u, __u32 unused)
{
	struct near *n = near(u);
	struct interpreted f;
	__u64 fp = 0, up;
	__s64 bci = -1;

	(void)unused;
	if (!n)
		return fusee_stop(u, HOTSPOT_UNREADABLE);
	if (!AT(u, &up, n->link) && up < FARTHEST / 8) {
		fp = n->link + 8 * up;
		if (!fusee_read(u, &f, sizeof(f), fp - BELOW_FP) && f.sender_sp < FARTHEST / 8)
			bci = bci_of(u, &f);
	}
	if (bci < 0 || FUSEE_CALL(fusee_hotspot_read_generation, u, 0) ||
	    FUSEE_CALL(fusee_hotspot_name_method, u, 1) < 0) {
		u->pc = n->pc;
		u->sp = n->sp;
		return fusee_stop(u, HOTSPOT_NO_INTERPRETED);
	}
	fusee_push(u, u->scratch[KEY], (__u64)bci);
	return to_caller_in_chunk(u, n, f.pc, fp + 8 * f.sender_sp, fp);
}
FUSEE_PART(fusee_hotspot_interpreted_in_chunk, interpreted_in_chunk)

#endif

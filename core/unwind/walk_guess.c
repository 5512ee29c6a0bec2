/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/internal/walk_guess.h"

/* What a function may change, by the ABI: all but rbx, rbp, rsp and r12 to r15. */
#define CALLER_SAVED (0xffffu & ~(FUSEE_CALLEE_SAVED | 1u << FUSEE_X86_RBP | 1u << FUSEE_X86_RSP))

#define MOST_ROOM (64u << 10) /* bytes of the frame */

/* Does a call end right before this address? call rel32; call *%reg; call *n(%reg), *n(%rip). */
static bool is_behind_call(struct fusee_native *n, uint64_t pc)
{
	unsigned char b[6], *end = b + sizeof(b);

	if (n->read(n, b, sizeof(b), pc - sizeof(b)))
		return false;
	return end[-5] == 0xe8 || (end[-2] == 0xff && (end[-1] & 0xf8) == 0xd0) ||
	       (end[-3] == 0xff && (end[-2] & 0xf8) == 0x50) ||
	       (end[-6] == 0xff && ((end[-5] & 0xf8) == 0x90 || end[-5] == 0x15));
}

int walk_guess(struct fusee_native *n, const struct fusee_unwinder_ops *ops)
{
	const struct walk_context *c = n->arg;
	const struct fusee_unwind before = n->u;

	if (c->stepped != 1 || n->u.flags & FUSEE_PC_EXACT)
		return FUSEE_STOP;
	n->u.error = 0;
	n->u.flags &= ~(uint32_t)FUSEE_INEXPRESSIBLE;
	n->u.valid_regs |= CALLER_SAVED;
	if (ops->native_step(&n->u) == FUSEE_NEXT && n->u.sp > before.sp &&
	    n->u.sp - before.sp <= MOST_ROOM && !(n->u.sp & 15) && is_behind_call(n, n->u.pc)) {
		n->u.valid_regs &= ~(uint64_t)CALLER_SAVED;
		n->u.flags |= FUSEE_GUESSED;
		return FUSEE_NEXT;
	}
	n->u = before;
	return FUSEE_STOP;
}

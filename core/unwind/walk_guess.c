/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/internal/walk_guess.h"

#include "process/call.h"

/* What a function may change, by the ABI: all but rbx, rbp, rsp and r12 to r15. */
#define CALLER_SAVED (0xffffu & ~(FUSEE_CALLEE_SAVED | 1u << FUSEE_X86_RBP | 1u << FUSEE_X86_RSP))

#define MOST_ROOM (64u << 10) /* bytes of the frame */

bool walk_is_behind_call(struct fusee_native *n, uint64_t pc)
{
	unsigned char code[CALL_BYTES];

	return !n->read(n, code, CALL_BYTES, pc - CALL_BYTES) && call_ends(code);
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
	    n->u.sp - before.sp <= MOST_ROOM && !(n->u.sp & 15) &&
	    walk_is_behind_call(n, n->u.pc)) {
		n->u.valid_regs &= ~(uint64_t)CALLER_SAVED;
		n->u.flags |= FUSEE_GUESSED;
		return FUSEE_NEXT;
	}
	n->u = before;
	return FUSEE_STOP;
}

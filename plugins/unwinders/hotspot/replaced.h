/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* A compiled frame that is replaced by interpreted frames, and stubs whose frame has no fixed size.
 * A part of the step: hotspot.bpf.c includes it. */
#ifndef HOTSPOT_REPLACED_H
#define HOTSPOT_REPLACED_H

#include "bare.h"
#include "emit.h"
#include "state.h"

#define IS_DEOPTIMIZATION TEXT8('D', 'e', 'o', 'p', 't', 'i', 'm', 'i')
#define IS_UNCOMMON TEXT8('U', 'n', 'c', 'o', 'm', 'm', 'o', 'n')

FUSEE_FN void note_replacing(struct fusee_unwind *u)
{
	if (u->scratch[NAME8] == IS_DEOPTIMIZATION || u->scratch[NAME8] == IS_UNCOMMON)
		u->scratch[HI] |= REPLACES;
}

/* Stubs that replace a compiled frame by interpreted frames align sp for the JVM's function that
 * writes these, so it is not at a fixed distance from the caller's. They keep a frame pointer. 1:
 * it leads to the caller. */
FUSEE_FN int is_aligned(struct fusee_unwind *u)
{
	__u64 saved[2];

	return u->scratch[HI] & REPLACES && !is_exact(u) &&
	       !(u->flags & FUSEE_FP_LOST || u->fp & 7) && u->fp - u->sp < FARTHEST &&
	       !AT(u, &saved, u->fp) && is_java_code(u, saved[1]);
}

/* Steps from a stub whose sp is at no fixed distance from its caller's: it aligns it, or comes to
 * push %rbp only behind a part that has no frame (C1's, that allocate or register a finalizer). */
FUSEE_FN int without_frame(struct fusee_unwind *u, int is_method)
{
	if (is_aligned(u))
		return to_caller_of_frame(u, u->fp + 16);
	if (is_exact(u) && !is_method && FUSEE_CALL(fusee_hotspot_leave_unsized, u, 0) == 1)
		return FUSEE_NEXT;
	return fusee_stop(u, HOTSPOT_NO_FRAME);
}

/* Steps from an interpreted frame, in the place of a compiled frame, that has no method yet:
 * the stub has written what leads to the caller. 1: the state is the caller's; 0: this is no such
 * frame. */
static int leave_unfilled(struct fusee_unwind *u, __u32 unused)
{
	__u64 at[4]; /* of last_sp, sender_sp, the saved frame pointer, the return address */

	(void)unused;
	if (!(u->scratch[HI] & REPLACES) || is_exact(u) || u->flags & FUSEE_FP_LOST || u->fp & 7 ||
	    u->fp - u->sp > FARTHEST || AT(u, &at, u->fp - 16) || at[0] || at[1] & 7 ||
	    at[1] < u->fp + 8 || at[1] - u->fp > FARTHEST || !is_java_code(u, at[3]))
		return 0;
	FUSEE_CALL(fusee_hotspot_push_stub, u, HOTSPOT_REPLACES);
	u->fp = at[2];
	to_caller(u, at[3], at[1]);
	return 1;
}
FUSEE_PART(fusee_hotspot_leave_unfilled, leave_unfilled)

#endif

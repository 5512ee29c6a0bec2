/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * fusee/erlang.bpf.h - where the stack of an Erlang process ends, for unwinders that name its code.
 *
 * Erlang processes have stacks of their own, on which its compiled code keeps frame pointers; the
 * first frame of each has none above it, and the scheduler that runs the process is not there.
 */
#ifndef FUSEE_ERLANG_BPF_H
#define FUSEE_ERLANG_BPF_H

#include <fusee/unwinder.bpf.h>

#define FUSEE_ERLANG_FARTHEST (1ull << 20)

/* Ends the stack where the chain of frame pointers ends, with this reason. Everything else is
 * passed on to the frame pointer unwinder. */
FUSEE_FN int fusee_erlang_step(struct fusee_unwind *u, __u32 ended)
{
	__u64 frame[2];

	if (u->flags & (FUSEE_PC_EXACT | FUSEE_FIRST))
		return FUSEE_PASS;
	if (u->flags & FUSEE_FP_LOST || !u->fp || u->fp & 7 || u->fp < u->sp ||
	    u->fp - u->sp > FUSEE_ERLANG_FARTHEST || fusee_read(u, frame, 16, u->fp) || !frame[1])
		return fusee_stop(u, ended);
	return FUSEE_PASS;
}
#endif

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Steps for code of perf maps that the frame pointer unwinder cannot step. Everything else is
 * passed on to it.
 *
 * CPython's trampolines (-X perf) keep no frame pointer: <fusee/trampoline.bpf.h>.
 *
 * Erlang processes have stacks of their own, on which its compiled code keeps frame pointers; the
 * first frame of each has none above it, and the scheduler that runs the process is not there.
 */
#include <fusee/trampoline.bpf.h>
#include <fusee/unwinder.bpf.h>

#include "reasons.h"

#define FARTHEST (1ull << 20)

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
		return fusee_trampoline_step(u, PERFMAP_REASON_UNREADABLE);
	if (u->claim_arg == PERFMAP_ERLANG)
		return erlang(u);
	return FUSEE_PASS;
}

FUSEE_LANGUAGE_STEP(perfmap, perfmap_step);

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Steps for code of perf maps that the frame pointer unwinder cannot step. Everything else is
 * passed on to it.
 *
 * CPython's trampolines (-X perf) keep no frame pointer: <fusee/trampoline.bpf.h>. Erlang processes
 * have stacks of their own: <fusee/erlang.bpf.h>.
 */
#include <fusee/erlang.bpf.h>
#include <fusee/trampoline.bpf.h>
#include <fusee/unwinder.bpf.h>

#include "reasons.h"

static int perfmap_step(struct fusee_unwind *u)
{
	u->error = 0;
	if (u->claim_arg == PERFMAP_PYTHON)
		return fusee_trampoline_step(u, PERFMAP_REASON_UNREADABLE);
	if (u->claim_arg == PERFMAP_ERLANG)
		return fusee_erlang_step(u, PERFMAP_REASON_ERLANG);
	return FUSEE_PASS;
}

FUSEE_LANGUAGE_STEP(perfmap, perfmap_step);

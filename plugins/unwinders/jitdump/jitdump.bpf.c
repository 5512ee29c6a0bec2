/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Steps CPython's trampolines and the first frames of Erlang processes. Native unwinders step all
 * other code of jitdump files. */
#include <fusee/erlang.bpf.h>
#include <fusee/trampoline.bpf.h>
#include <fusee/unwinder.bpf.h>

#include "reasons.h"

static int jitdump_step(struct fusee_unwind *u)
{
	u->error = 0;
	if (u->claim_arg == JITDUMP_PYTHON)
		return fusee_trampoline_step(u, JITDUMP_REASON_UNREADABLE);
	if (u->claim_arg == JITDUMP_ERLANG)
		return fusee_erlang_step(u, JITDUMP_REASON_ERLANG);
	return FUSEE_PASS;
}

FUSEE_LANGUAGE_STEP(jitdump, jitdump_step);

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Steps CPython's trampolines. Native unwinders step all other code of jitdump files. */
#include <fusee/trampoline.bpf.h>
#include <fusee/unwinder.bpf.h>

#include "reasons.h"

static int jitdump_step(struct fusee_unwind *u)
{
	u->error = 0;
	return fusee_trampoline_step(u, JITDUMP_REASON_UNREADABLE);
}

FUSEE_LANGUAGE_STEP(jitdump, jitdump_step);

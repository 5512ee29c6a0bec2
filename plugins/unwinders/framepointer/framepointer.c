/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptor of the frame pointer unwinder, which has a step and no table. */
#include <fusee/plugin.h>

#include "reasons.h"

int fusee_step_framepointer(struct fusee_unwind *u);

FUSEE_EMBED(framepointer_bpf, "framepointer.bpf.o");

static const char *const reasons[] = FRAMEPOINTER_REASON_TEXTS;

static const struct fusee_unwinder_ops ops = {
	.size = sizeof(ops),
	.flags = FUSEE_UNWINDER_NATIVE,
	.order = 90,
	.slab_version = 1,
	.frame_type = "native",
	.reasons = reasons,
	.bpf = framepointer_bpf,
	.bpf_end = framepointer_bpf_end,
	.native_step = fusee_step_framepointer,
};

FUSEE_PLUGIN(framepointer, FUSEE_UNWINDER, .version = "0.1",
	     .doc = "Steps by frame pointer where code has no unwind table.", .ops = &ops);

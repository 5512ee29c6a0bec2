/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The sampler's programs with a fault: each hundredth record is lost and not counted. The checks
 * of losses must find it (tests/run/losses). */
#define FUSEE_CORE

#include <fusee/unwinder.bpf.h>

#include "kernel.h"

FUSEE_FN long output_but_for_some(void *ctx, void *map, __u64 flags, void *data, __u64 size)
{
	if (bpf_get_prandom_u32() % 100 == 0)
		return 0;
	return bpf_perf_event_output(ctx, map, flags, data, size);
}

#define bpf_perf_event_output output_but_for_some
#include "sampler.bpf.c"

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Hits of raw tracepoints of the kernel, whose context is their arguments. Kernels before 6.10 do
 * not tell a program at which it is, so that each has a program of its own; those that are not used
 * are not loaded.
 */
#ifndef BPF_TRACEPOINTS_H
#define BPF_TRACEPOINTS_H

#include <fusee/unwinder.bpf.h>

#include "filter.h"
#include "hits.h"
#include "kernel.h"
#include "probe_maps.h"

/* The kernel refuses a program that reads more arguments than there are, whichever it reads; the
 * core has checked the filter's. */
FUSEE_FN int tracepoint_passes(const __u64 *arguments, const struct probe_place *at)
{
	const struct probe_filter *f = filter_of(at);
	__u64 value, i;

	if (!f)
		return 1;
	i = f->argument;
	if (i >= FILTER_DESCRIBED)
		return 0;
	return !bpf_probe_read_kernel(&value, sizeof(value), (const char *)arguments + i * 8) &&
	       compare_typed(f, value);
}

FUSEE_FN int tracepoint_hit(__u64 *arguments, __u32 number)
{
	struct probe_cpu *p = bpf_get_current_pid_tgid() ? probe_selected() : 0;
	struct probe_place *at = fusee_bpf_map_lookup_elem(&sampler_filters, &number);

	if (p && tracepoint_passes(arguments, at))
		probe_hit(arguments, p, at, 1, 0);
	else if (p)
		count_at(p, at, PROBE_FILTERED, 1);
	return 0;
}

#define TRACEPOINT_PROGRAM(n)                        \
	SEC("raw_tp")                                \
	int sampler_tracepoint_##n(__u64 *arguments) \
	{                                            \
		return tracepoint_hit(arguments, n); \
	}

TRACEPOINT_NUMBERS(TRACEPOINT_PROGRAM)
#endif

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Which hits of a probe count: by an argument of the function, at its begin; or by what it has
 * returned, or its time. */
#ifndef BPF_FILTER_H
#define BPF_FILTER_H

#include <fusee/unwinder.bpf.h>

#include "kernel.h"
#include "probe_maps.h"

/* By number of the probe, which is its cookie. The core sizes it. */
struct {
	__uint(type, 2 /* ARRAY */);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct probe_place);
} sampler_filters SEC(".maps");

/* A load of its own for each: the context may only be read at constant offsets. */
FUSEE_FN __u64 argument_of(const struct user_regs *regs, __u32 i)
{
	__u64 rdi = regs->rdi, rsi = regs->rsi, rdx = regs->rdx, rcx = regs->rcx, r8 = regs->r8,
	      r9 = regs->r9;

	__asm__ volatile("" : "+r"(rdi), "+r"(rsi), "+r"(rdx));
	__asm__ volatile("" : "+r"(rcx), "+r"(r8), "+r"(r9));
	return i == 0 ? rdi : i == 1 ? rsi : i == 2 ? rdx : i == 3 ? rcx : i == 4 ? r8 : r9;
}

FUSEE_FN int compare(const struct probe_filter *f, __u64 v)
{
	__s64 s = v, with = f->value;

	switch (f->operator) {
	case FILTER_EQUAL:
		return v == f->value;
	case FILTER_NOT_EQUAL:
		return v != f->value;
	case FILTER_ANY_BIT:
		return (v & f->value) != 0;
	case FILTER_LESS:
		return f->is_signed ? s < with : v < f->value;
	case FILTER_AT_MOST:
		return f->is_signed ? s <= with : v <= f->value;
	case FILTER_MORE:
		return f->is_signed ? s > with : v > f->value;
	case FILTER_AT_LEAST:
		return f->is_signed ? s >= with : v >= f->value;
	default:
		return 1;
	}
}

/* The same of the part of the value that is of the filter's type. */
FUSEE_FN int compare_typed(const struct probe_filter *f, __u64 v)
{
	__u32 shift = (64 - f->bits) & 63;

	v <<= shift;
	return compare(f, f->is_signed ? (__u64)((__s64)v >> shift) : v >> shift);
}

/* This place; NULL: it has neither a filter nor a hook. */
FUSEE_FN struct probe_place *place_of(void *context)
{
	__u32 number;

	if (!kernel_has(get_attach_cookie))
		return 0;
	number = bpf_get_attach_cookie(context);
	return fusee_bpf_map_lookup_elem(&sampler_filters, &number);
}

FUSEE_FN const struct probe_filter *filter_of(const struct probe_place *at)
{
	return at && at->filter.operator? &at->filter : 0;
}

/* Does the hit count, as far as is known at the function's begin? */
FUSEE_FN int filter_passes(const struct probe_place *at, struct user_regs *regs)
{
	const struct probe_filter *f = filter_of(at);

	return !f || f->argument >= FILTER_ARGUMENTS ||
	       compare_typed(f, argument_of(regs, f->argument));
}

/* .. and as is known at its return? */
FUSEE_FN int filter_passes_return(const struct probe_place *at, struct user_regs *regs, __u64 ns)
{
	const struct probe_filter *f = filter_of(at);
	__u64 returned = regs->rax;

	if (!f || f->argument < FILTER_RETVAL)
		return 1;
	return compare_typed(f, f->argument == FILTER_NS ? ns : returned);
}
#endif

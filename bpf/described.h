/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The deciding half of probes whose notes describe their arguments: hits that a filter chooses. */
#ifndef BPF_DESCRIBED_H
#define BPF_DESCRIBED_H

#include <fusee/unwinder.bpf.h>

#include "filter.h"
#include "kernel.h"
#include "probe_maps.h"

/* The number of the word comes from a file, so the context is read as any memory of the kernel. */
FUSEE_FN int register_word(const struct user_regs *regs, __u32 word, __u64 *value)
{
	const char *at = (const char *)regs;

	*value = 0;
	if (word == NO_REGISTER)
		return 0;
	if (word >= REGISTER_WORDS)
		return -1;
	return bpf_probe_read_kernel(value, sizeof(*value), at + word * 8) ? -1 : 0;
}

/* The argument, extended to 64 bits. 0 or -1. */
FUSEE_FN int operand_value(const struct user_regs *regs, const struct probe_operand *o,
			   __u64 *value)
{
	__u32 size = o->bits >> 3 & 15, shift = (64 - o->bits) & 63;
	__u64 index, base;

	*value = o->number;
	if (o->kind != OPERAND_NUMBER && register_word(regs, o->base, &base))
		return -1;
	if (o->kind == OPERAND_REGISTER)
		*value = base >> (o->shift & 63);
	if (o->kind == OPERAND_MEMORY) {
		if (size > 8 || register_word(regs, o->index, &index))
			return -1;
		base += (index << (o->shift & 63)) + o->number;
		*value = 0;
		if (fusee_bpf_probe_read_user(value, size, (const void *)base))
			return -1;
	}
	*value <<= shift;
	*value = o->is_signed ? (__u64)((__s64)*value >> shift) : *value >> shift;
	return 0;
}

/* A hit of such a probe. Loaded only if one has a filter. */
SEC("uprobe")
int sampler_probe_described(struct user_regs *regs)
{
	struct probe_cpu *p = probe_selected();
	struct probe_place *at = place_of(regs);
	const struct probe_filter *f = filter_of(at);
	__u64 value = 0;

	if (!p)
		return 0;
	if (f && operand_value(regs, &f->operand, &value))
		count_at(p, at, PROBE_UNREAD, 1);
	else if (f && !compare_typed(f, value))
		count_at(p, at, PROBE_FILTERED, 1);
	else
		probe_hit(regs, p, at, 1, 0);
	return 0;
}
#endif

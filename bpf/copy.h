/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Stack copies for user space. A copy holds the pages that are present, from sp up to where several
 * pages in a row are absent. perf's own copy ends at the first page that was never touched, and
 * takes the ring space of the largest copy.
 */
#ifndef BPF_COPY_H
#define BPF_COPY_H

#include <fusee/unwinder.bpf.h>

#include "begin.h"
#include "kernel.h"
#include "sample.h"

#define COPY_HOLES 7u /* absent pages in a row at which the stack ends */

struct copy_scratch {
	__u64 from;    /* address of the next page */
	__u32 missing; /* absent pages in a row */
	__u32 pad;
	struct record_copy record;
};

/* One for each possible CPU; the core sizes the map. It is an array because a per-CPU value is at
 * most 32 KiB. */
struct {
	__uint(type, 2 /* ARRAY */);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct copy_scratch);
} sampler_copies SEC(".maps");

FUSEE_FN struct copy_scratch *copy_scratch(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return fusee_bpf_map_lookup_elem(&sampler_copies, &cpu);
}

/* Copies the next page. 1: the copy is finished. A global function, so that the verifier checks it
 * once and not for each pass of the loop. */
__attribute__((noinline)) int sampler_copy_page(__u32 page)
{
	struct copy_scratch *c = copy_scratch();
	__u32 at, n, limit;

	__asm__ volatile("" : "+r"(page));
	if (!c)
		return 1;
	at = c->record.bytes;
	limit = c->record.limit;
	if (at >= limit || page >= 64)
		return 1;
	n = RECORD_PAGE - (c->from & (RECORD_PAGE - 1));
	if (n > limit - at)
		n = limit - at;
	/* the verifier of 5.10 needs bounds of each, which the compiler would leave out */
	__asm__ volatile("" : "+r"(at), "+r"(n));
	if (at > RECORD_MAX_COPY || !n || n > RECORD_PAGE)
		return 1;
	if (fusee_bpf_probe_read_user(&c->record.stack[at], n, (const void *)c->from)) {
		c->record.holes |= 1ull << page;
		if (++c->missing == COPY_HOLES)
			return 1;
	} else {
		c->missing = 0;
		c->record.bytes = at + n;
	}
	c->from += n;
	return 0;
}

/* Copies at most `limit` bytes of the stack from sp on. */
FUSEE_FN void copy_stack(struct copy_scratch *c, __u32 limit)
{
	c->from = c->record.regs[FUSEE_X86_RSP];
	c->missing = 0;
	c->record.limit = limit;
	c->record.bytes = 0;
	c->record.holes = 0;
	for (__u32 page = 0; page < RECORD_COPY_PAGES; page++)
		if (sampler_copy_page(page))
			break;
}

/* Sends registers, kernel frames and the stack copy of the sample in progress. 0; -1: it can't be
 * sent, and the event is to write its own sample. */
FUSEE_FN int send_copy(struct sampler_context *ctx, struct scratch *s, __u32 limit)
{
	struct copy_scratch *c = copy_scratch();
	long bytes = 0;
	__u32 size;

	if (!c)
		return -1;
	__builtin_memcpy(&c->record.tick, &s->record.tick, sizeof(c->record.tick));
	c->record.stop = s->stop;
	regs_by_number(c->record.regs, &s->regs);
	c->record.regs[FUSEE_X86_RBP] = s->regs.rbp;
	c->record.regs[FUSEE_X86_RSP] = s->regs.rsp;
	c->record.regs[FUSEE_X86_RIP] = s->regs.rip;
	if (is_in_kernel(ctx))
		bytes = bpf_get_stack((void *)ctx, c->record.kernel, sizeof(c->record.kernel), 0);
	c->record.nkernel = bytes > 0 ? (__u32)bytes / 8 : 0;
	c->record.continued = s->search.number ? s->search.began : 0;
	copy_stack(c, limit);
#ifdef SAMPLER_OF_PROBES
	if (s->replaced.returned && c->record.bytes >= 8 && !(c->record.holes & 1))
		__builtin_memcpy(c->record.stack, &s->replaced.returned, 8);
#endif
	size = (RECORD_COPY_HEAD + c->record.bytes + 7) & ~7u;
	if (size > sizeof(c->record))
		return -1;
	c->record.tick.head.kind = RECORD_COPY;
	c->record.tick.head.size = size;
	s->copies.bytes += size;
	return sent(
		bpf_perf_event_output(ctx, &sampler_output, BPF_F_CURRENT_CPU, &c->record, size));
}
#endif

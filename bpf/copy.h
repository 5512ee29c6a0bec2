/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What is left to user space goes with a copy of the stack: of those pages that are there, from sp
 * up to where nothing more is found. perf's own copy ends at the first page that was never touched,
 * and takes the room of the largest one in the ring.
 */
#ifndef BPF_COPY_H
#define BPF_COPY_H

#include <fusee/unwinder.bpf.h>

#include "begin.h"
#include "kernel.h"
#include "sample.h"
#include "records.h"

#define PAGE 4096u

/* One for each CPU; the core sizes it. An array, since what is kept per CPU is at most 32 KiB. */
struct {
	__uint(type, 2 /* ARRAY */);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sampler_copy);
} sampler_copies SEC(".maps");

FUSEE_FN struct sampler_copy *copy_here(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return fusee_bpf_map_lookup_elem(&sampler_copies, &cpu);
}

/* The next page. 1: there is no more to copy. A global function, so that the verifier looks at it
 * once and not for each way through the loop. */
__attribute__((noinline)) int sampler_copy_page(__u32 page)
{
	struct sampler_copy *to = copy_here();
	__u32 at, n, limit;

	__asm__ volatile("" : "+r"(page));
	if (!to)
		return 1;
	at = to->bytes;
	limit = to->limit;
	if (at >= limit || page >= 64)
		return 1;
	n = PAGE - (to->from & (PAGE - 1));
	if (n > limit - at)
		n = limit - at;
	/* the verifier of 5.10 wants bounds by themselves, which the compiler would leave out */
	__asm__ volatile("" : "+r"(at), "+r"(n));
	if (at > SAMPLER_MAX_COPY || !n || n > PAGE)
		return 1;
	if (fusee_bpf_probe_read_user(&to->stack[at], n, (const void *)to->from)) {
		to->holes |= 1ull << page;
		if (++to->missing == SAMPLER_COPY_HOLES)
			return 1;
	} else {
		to->missing = 0;
		to->bytes = at + n;
	}
	to->from += n;
	return 0;
}

/* Copies the stack from sp on, `limit` bytes at most. */
FUSEE_FN void copy_stack(struct sampler_copy *to, __u32 limit)
{
	to->from = to->regs[FUSEE_X86_RSP];
	to->limit = limit;
	to->bytes = to->missing = 0;
	to->holes = 0;
	for (__u32 page = 0; page < SAMPLER_COPY_PAGES; page++)
		if (sampler_copy_page(page))
			break;
}

/* Sends registers, the kernel's frames and the stack; the scratch's record says of whom, and why.
 * 0, or -1: the event is to send its own copy. */
FUSEE_FN int send_copy(struct sampler_context *c, struct scratch *s, __u32 limit)
{
	struct sampler_copy *to = copy_here();
	__u64 cs = c->regs.cs;
	long bytes = 0;
	__u32 size;

	__asm__ volatile("" : "+r"(cs));
	if (!to)
		return -1;
	__builtin_memcpy(to->head, &s->record, SAMPLER_RECORD_HEAD);
	regs_by_number(to->regs, &s->regs);
	to->regs[FUSEE_X86_RBP] = s->regs.rbp;
	to->regs[FUSEE_X86_RSP] = s->regs.rsp;
	to->regs[FUSEE_X86_RIP] = s->regs.rip;
	if (!(cs & 3))
		bytes = bpf_get_stack((void *)c, to->kernel, sizeof(to->kernel), 0);
	to->nkernel = bytes > 0 ? (__u32)bytes / 8 : 0;
	copy_stack(to, limit);
	size = (SAMPLER_COPY_HEAD + to->bytes + 7) & ~7u;
	if (size > sizeof(*to))
		return -1;
	s->copied += size;
	return sent(bpf_perf_event_output(c, &sampler_output, BPF_F_CURRENT_CPU, to, size));
}
#endif

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Hits of uprobes. Two halves: a program for each kind of probe decides whether a hit is a sample
 * and what its value is; what it chooses is handed over by a tail call to sampler_tick, which
 * walks. The thread comes from user mode, with its registers in the context and its memory in
 * place.
 *
 * A program at a uprobe may be preempted where the kernel is built for it, and stays on its CPU.
 * The thread that runs meanwhile may come to a probe, too, and must not write what the first walk
 * uses: such a hit is counted, and not walked.
 */
#ifndef BPF_PROBES_H
#define BPF_PROBES_H

#include <fusee/unwinder.bpf.h>

#include "filter.h"
#include "hits.h"
#include "kernel.h"
#include "probe_maps.h"

/* ---- the deciding half: calls ---- */

/* Each call of a function. */
SEC("uprobe")
int sampler_probe_call(struct user_regs *regs)
{
	struct probe_cpu *p = probe_selected();
	struct probe_place *at = place_of(regs);

	if (p && filter_passes(at, regs))
		probe_hit(regs, p, at, 1, 0);
	else if (p)
		count_at(p, at, PROBE_FILTERED, 1);
	return 0;
}

/* ---- the deciding half: allocations ---- */

#define ALLOC_MOST (1ull << 47) /* no process has more */

FUSEE_FN __u64 alloc_product(__u64 n, __u64 size)
{
	return size && n > (ALLOC_MOST - 1) / size ? ALLOC_MOST : n * size;
}

/* Bytes that the call asks for, and 1 for none; 0: it does not ask for any, or for too many. */
FUSEE_FN __u64 alloc_bytes(const struct user_regs *regs, __u32 kind)
{
	__u64 bytes, first = regs->rdi, second = regs->rsi, third = regs->rdx;

	if (kind == ALLOC_REALLOC && first && !second)
		return 0; /* frees */
	if (kind == ALLOC_REALLOC || kind == ALLOC_ALIGNED)
		bytes = second;
	else if (kind == ALLOC_POSIX)
		bytes = third;
	else if (kind == ALLOC_CALLOC)
		bytes = alloc_product(first, second);
	else if (kind == ALLOC_REALLOCARRAY)
		bytes = alloc_product(second, third);
	else
		bytes = first;
	if (bytes >= ALLOC_MOST)
		return 0;
	return bytes ? bytes : 1;
}

/* Is this a call by a function of a known hit? */
FUSEE_FN int alloc_is_called(const struct alloc_call *c, const struct alloc_call *by)
{
	return c->tid == by->tid && c->sp < by->sp && c->returns - by->lo < by->bytes;
}

/* Has the kernel replaced the return address, for a probe at the return, maybe of others? Its own
 * is at the begin of a page. Only a jump comes to a function with such an address. */
FUSEE_FN int alloc_is_replaced(__u64 returns)
{
	return !(returns & 0xfff);
}

/* Did a function of a known hit jump to the new call as its last act? Then the stack is as at its
 * begin, which is also so if one place calls both in turn: hence the ranks and the values. */
FUSEE_FN int alloc_is_jump(const struct alloc_call *c, const struct alloc_call *from)
{
	return c->tid == from->tid && c->sp == from->sp &&
	       (c->returns == from->returns || alloc_is_replaced(c->returns)) &&
	       c->value == from->value && ALLOC_RANK(c->ranked) < ALLOC_RANK(from->ranked);
}

/* Is it nested in a call that is known? Notes it, in place of those that have ended by now. */
FUSEE_FN int alloc_note(const struct alloc_call *c, struct probe_cpu *p)
{
	__u64 level = 0;
	int nested = 0;

#pragma unroll
	for (__u32 i = 0; i < ALLOC_DEPTH; i++) {
		int jump = i < p->depth && alloc_is_jump(c, &p->calls[i]);

		if (jump || (i < p->depth && alloc_is_called(c, &p->calls[i]))) {
			nested = 1;
			level = jump || i == ALLOC_DEPTH - 1 ? i : i + 1;
		}
	}
	p->calls[level & (ALLOC_DEPTH - 1)] = *c;
	p->depth = level + 1;
	return nested;
}

/* The begin of an allocator's function. */
SEC("uprobe")
int sampler_probe_alloc(struct user_regs *regs)
{
	struct probe_cpu *p = probe_selected();
	struct alloc_call c = {};
	__u64 cookie;

	if (!p || !kernel_has(get_attach_cookie))
		return 0;
	cookie = bpf_get_attach_cookie(regs);
	c.ranked = cookie & 0xff;
	c.bytes = cookie >> 8;
	c.value = alloc_bytes(regs, ALLOC_KIND(c.ranked));
	if (!c.value)
		return 0;
	c.tid = bpf_get_current_pid_tgid();
	c.sp = regs->rsp;
	c.lo = regs->rip;
	if (fusee_bpf_probe_read_user(&c.returns, 8, (const void *)c.sp))
		c.returns = 0;
	if (alloc_note(&c, p)) {
		count_hit(p, PROBE_NESTED, 1);
		return 0;
	}
	probe_hit(regs, p, 0, c.value, 0);
	return 0;
}

#include "described.h"
#include "timed_calls.h"
#endif

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
#include "kernel.h"
#include "maps.h"
#include "probe_maps.h"
#include "probe_cpu.h"
#include "processes.h"
#include "sample.h"

/* Its only program is sampler_tick. */
struct {
	__uint(type, 3 /* PROG_ARRAY */);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, 4);
} sampler_probe_walk SEC(".maps");

/* ---- the core's half ---- */

FUSEE_FN int is_selected_process(struct sampler_settings *o, __u32 tgid)
{
	struct process_rate *rate = fusee_bpf_map_lookup_elem(&sampler_rates, &tgid);
	__u64 period;

	if (!rate)
		rate = join_group(o, tgid);
	period = rate ? rate->period : o->default_period;
	return period != PERIOD_NONE && period != PERIOD_ON_EXEC;
}

FUSEE_FN void count_hit(struct probe_cpu *p, __u32 result, __u64 n)
{
	if (result < PROBE_RESULT_COUNT)
		__sync_fetch_and_add(&p->counts[result], n);
}

/* The walk of the running hit has ended. Returns the program's answer. */
FUSEE_FN int probe_end(void)
{
	struct probe_cpu *p = probe_cpu();
	__u64 answer;

	if (!p)
		return 0;
	answer = p->answer & 1;
	__sync_fetch_and_add(&p->busy, -1);
	return answer;
}

/* The hit is a sample of this weight. Returns only if it is not walked; else the program answers
 * this when the walk has ended. */
FUSEE_FN void probe_take(void *context, struct probe_cpu *p, __u64 value, __u64 weight,
			 __u64 function, int answer)
{
	count_hit(p, PROBE_CHOSEN, 1);
	__sync_fetch_and_add(&p->busy, 1);
	if (READ_ONCE(p->busy) == 1) {
		p->value = value;
		p->weight = weight;
		p->answer = answer;
		p->function = function;
		bpf_tail_call(context, &sampler_probe_walk, 0);
		count_hit(p, PROBE_NOT_WALKED, 1);
	} else {
		count_hit(p, PROBE_BUSY, 1);
	}
	__sync_fetch_and_add(&p->busy, -1);
}

/* Notes the thread, and its hit. */
FUSEE_FN void describe(struct record_tick *r, __u64 ids)
{
	struct probe_cpu *p = probe_cpu();

	r->head.pid = ids >> 32;
	r->head.tid = ids;
	r->head.process = 0;
	r->head.flags = RECORD_HIT;
	r->head.share = 0;
	r->period = p ? p->weight : 0;
	r->value = p ? p->value : 0;
}

/* A hit of this value. It is a sample for certain if that is a period or more, and then represents
 * itself; else with the probability of their ratio, and then it represents a period. */
FUSEE_FN void probe_hit(void *context, struct probe_cpu *p, __u64 value, __u64 function)
{
	struct sampler_settings *o = settings();
	__u64 period = o ? READ_ONCE(o->probe_period) : 0;

	count_hit(p, PROBE_HITS, 1);
	count_hit(p, PROBE_VALUE, value);
	if (!period || (value < period && bpf_get_prandom_u32() * period >= value << 32))
		return;
	probe_take(context, p, value, value < period ? period : value, function, 0);
}

/* NULL: the hit is of no selected process, or hits are no samples now. */
FUSEE_FN struct probe_cpu *probe_selected(void)
{
	struct sampler_settings *o = settings();

	if (!o || !READ_ONCE(o->probe_period) ||
	    !is_selected_process(o, bpf_get_current_pid_tgid() >> 32))
		return 0;
	return probe_cpu();
}

/* ---- the deciding half: calls ---- */

/* Each call of a function. */
SEC("uprobe")
int sampler_probe_call(struct user_regs *regs)
{
	struct probe_cpu *p = probe_selected();

	if (p && filter_passes(regs))
		probe_hit(regs, p, 1, 0);
	else if (p)
		count_hit(p, PROBE_FILTERED, 1);
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

/* Did a function of a known hit jump to the new call as its last act? Then the stack is as at its
 * begin, which is also so if one place calls both in turn: hence the ranks and the values. */
FUSEE_FN int alloc_is_jump(const struct alloc_call *c, const struct alloc_call *from)
{
	return c->tid == from->tid && c->sp == from->sp && c->returns == from->returns &&
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
	probe_hit(regs, p, c.value, 0);
	return 0;
}

#include "described.h"
#include "timed_calls.h"
#endif

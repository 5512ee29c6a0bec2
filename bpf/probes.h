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

#include "kernel.h"
#include "maps.h"
#include "probe_maps.h"
#include "processes.h"
#include "sample.h"

struct {
	__uint(type, 6 /* PERCPU_ARRAY */);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct probe_cpu);
} sampler_probe_cpus SEC(".maps");

/* Its only program is sampler_tick. */
struct {
	__uint(type, 3 /* PROG_ARRAY */);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, 4);
} sampler_probe_walk SEC(".maps");

FUSEE_FN struct probe_cpu *probe_cpu(void)
{
	__u32 zero = 0;

	return fusee_bpf_map_lookup_elem(&sampler_probe_cpus, &zero);
}

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

/* The walk of the running hit has ended. */
FUSEE_FN void probe_end(void)
{
	struct probe_cpu *p = probe_cpu();

	if (p)
		__sync_fetch_and_add(&p->busy, -1);
}

/* The hit is a sample of this weight. Returns only if it is not walked. */
FUSEE_FN void probe_take(void *context, struct probe_cpu *p, __u64 value, __u64 weight)
{
	count_hit(p, PROBE_CHOSEN, 1);
	__sync_fetch_and_add(&p->busy, 1);
	if (READ_ONCE(p->busy) == 1) {
		p->value = value;
		p->weight = weight;
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

/* ---- the deciding half ---- */

/* A hit of this value. It is a sample for certain if that is a period or more, and then represents
 * itself; else with the probability of their ratio, and then it represents a period. */
FUSEE_FN void probe_hit(void *context, __u64 value)
{
	__u64 ids = bpf_get_current_pid_tgid(), period;
	struct sampler_settings *o = settings();
	struct probe_cpu *p = probe_cpu();

	if (!o || !p)
		return;
	period = READ_ONCE(o->probe_period);
	if (!period || !is_selected_process(o, ids >> 32))
		return;
	count_hit(p, PROBE_HITS, 1);
	count_hit(p, PROBE_VALUE, value);
	if (value < period && bpf_get_prandom_u32() * period >= value << 32)
		return;
	probe_take(context, p, value, value < period ? period : value);
}

/* Each call of a function. */
SEC("uprobe")
int sampler_probe_call(struct user_regs *regs)
{
	probe_hit(regs, 1);
	return 0;
}
#endif

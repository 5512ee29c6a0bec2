/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The core's half of hits, of uprobes and of tracepoints: which are samples, and of what weight. */
#ifndef BPF_HITS_H
#define BPF_HITS_H

#include <fusee/unwinder.bpf.h>

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

/* By number of the hook. The core sizes it. */
struct {
	__uint(type, 6 /* PERCPU_ARRAY */);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct hook_cpu);
} sampler_hooks SEC(".maps");

/* .. and of a hook; 0: of none. */
FUSEE_FN void count_hook(struct probe_cpu *p, __u32 hook, __u32 result, __u64 n)
{
	struct hook_cpu *h;

	count_hit(p, result, n);
	h = hook ? fusee_bpf_map_lookup_elem(&sampler_hooks, &hook) : 0;
	if (h && result < PROBE_RESULT_COUNT)
		__sync_fetch_and_add(&h->counts[result], n);
}

/* .. of that whose place it is. at: NULL if it has no number. */
FUSEE_FN void count_at(struct probe_cpu *p, const struct probe_place *at, __u32 result, __u64 n)
{
	count_hook(p, at ? at->hook : 0, result, n);
}

/* The ring had no room for the running hit's record. */
FUSEE_FN void hit_not_sent(void)
{
	struct probe_cpu *p = probe_cpu();

	if (p)
		count_hook(p, p->hook, PROBE_RING_FULL, 1);
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

/* What is said of a hit that is a sample. */
struct hit {
	__u64 value, weight, function;
	const struct probe_place *at; /* NULL: its place has no number */
	int answer;                   /* of the program, when the walk has ended */
};

/* The hit is a sample. Returns only if it is not walked. */
FUSEE_FN void probe_take(void *context, struct probe_cpu *p, const struct hit *hit)
{
	count_at(p, hit->at, PROBE_CHOSEN, 1);
	__sync_fetch_and_add(&p->busy, 1);
	if (READ_ONCE(p->busy) == 1) {
		p->value = hit->value;
		p->weight = hit->weight;
		p->answer = hit->answer;
		p->function = hit->function;
		p->hook = hit->at ? hit->at->hook : 0;
		bpf_tail_call(context, &sampler_probe_walk, 0);
		count_at(p, hit->at, PROBE_NOT_WALKED, 1);
	} else {
		count_at(p, hit->at, PROBE_BUSY, 1);
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
	r->head.hook = p ? p->hook : 0;
	r->period = p ? p->weight : 0;
	r->value = p ? p->value : 0;
}

/* A hit of this value. It is a sample for certain if that is a period or more, and then represents
 * itself; else with the probability of their ratio, and then it represents a period. */
FUSEE_FN void probe_hit(void *context, struct probe_cpu *p, const struct probe_place *at,
			__u64 value, __u64 function)
{
	struct sampler_settings *o = settings();
	__u64 period = o ? READ_ONCE(o->probe_period) : 0;
	struct hit hit = {.value = value, .function = function, .at = at};

	if (period && at && at->period)
		period = at->period;
	count_at(p, at, PROBE_HITS, 1);
	count_at(p, at, PROBE_VALUE, value);
	if (!period || (value < period && bpf_get_prandom_u32() * period >= value << 32))
		return;
	hit.weight = value < period ? period : value;
	probe_take(context, p, &hit);
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
#endif

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Samples that the program of a sampler chooses: the functions of fusee/sampler.bpf.h that such a
 * program calls. It runs where the stack cannot be read, as at a switch of threads, where the
 * memory of the other process is still in place. So the core requests an interrupt of this CPU by
 * waking a ring buffer without readers; it comes when the kernel enables interrupts again: at a
 * switch that is right behind it, before the thread goes on.
 */
#ifndef BPF_WAITS_H
#define BPF_WAITS_H

#include <fusee/sampler.bpf.h>

#include "kernel.h"
#include "maps.h"
#include "processes.h"
#include "sample.h"
#include "waiters.h"

struct {
	__uint(type, 6 /* PERCPU_ARRAY */);
	__uint(max_entries, MAX_SAMPLERS);
	__type(key, __u32);
	__type(value, struct wait_cpu);
} sampler_wait_cpus SEC(".maps");

struct wait_wake {
	__uint(type, 27 /* RINGBUF */);
	__uint(max_entries, WAIT_RING_BYTES);
};

/* A ring for each CPU, since a ring has one interrupt; user space empties them. */
struct {
	__uint(type, 12 /* ARRAY_OF_MAPS */);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, 4);
	struct wait_wake *values[];
} sampler_wait_wakes SEC(".maps");

FUSEE_FN struct wait_cpu *wait_cpu(__u32 sampler)
{
	return fusee_bpf_map_lookup_elem(&sampler_wait_cpus, &sampler);
}

/* ---- which processes, and since when ---- */

FUSEE_OF_CORE const struct fusee_scope *fusee_sampler_scope_of(__u32 sampler)
{
	return scope_of(sampler);
}

FUSEE_FN int is_selected_process(struct sampler_settings *o, __u32 tgid)
{
	struct process_rate *rate = fusee_bpf_map_lookup_elem(&sampler_rates, &tgid);
	__u64 period = rate ? rate->period : o->default_period;

	return period != PERIOD_NONE && period != PERIOD_ON_EXEC;
}

FUSEE_OF_CORE __u64 fusee_sampler_began(void)
{
	struct sampler_settings *o = settings();

	return o ? o->wait_began : 0;
}

FUSEE_OF_CORE __u64 fusee_sampler_complete_since(void *thread)
{
	struct task_struct *task = thread;
	struct sampler_settings *o = settings();
	struct process_rate *rate;
	__u32 tgid = task->tgid;
	__u64 from;

	if (!o || o->groups || READ_ONCE(o->unheld) || !is_selected_process(o, tgid))
		return 0;
	from = o->wait_began;
	rate = fusee_bpf_map_lookup_elem(&sampler_rates, &tgid);
	return rate && rate->since > from ? rate->since : from;
}

FUSEE_OF_CORE int fusee_sampler_remember_of(__u32 sampler, void *thread,
					    const struct fusee_thread_memory *first)
{
	struct task_struct *task = thread;
	struct sampler_settings *o = settings();
	__u32 tid = task->pid, tgid = task->tgid;
	struct wait_cpu *cpu;

	if (!o || (!is_selected_process(o, tgid) && !join_group(o, tgid)))
		return -1;
	if (!remember_waiter(sampler, tid, first))
		return 0;
	READ_ONCE(o->unheld) = 1;
	cpu = wait_cpu(sampler);
	if (cpu)
		cpu->counts[WAIT_UNFOLLOWED]++;
	return -1;
}

FUSEE_OF_CORE __u64 fusee_sampler_time(void)
{
	return bpf_ktime_get_ns();
}

/* ---- which of its events are samples ---- */

/* 32 random bits: the upper half of a linear congruential sequence of 2^64, which this CPU has
 * begun somewhere. A call of the kernel's would take a tenth of the program's time at a switch. */
FUSEE_FN __u64 random_bits(struct wait_cpu *cpu)
{
	__u64 x = cpu->random;

	if (!x)
		x = (__u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32();
	x = x * 6364136223846793005ull + 1442695040888963407ull;
	cpu->random = x;
	return x >> 32;
}

FUSEE_OF_CORE __u64 fusee_sampler_chance_of(__u32 sampler, __u64 value)
{
	struct fusee_scope *s = scope_of(sampler);
	__u64 period = s ? READ_ONCE(s->period) : 0;
	struct wait_cpu *cpu = wait_cpu(sampler);

	if (!cpu || !period)
		return 0;
	cpu->counts[WAIT_ENDED]++;
	cpu->counts[WAIT_ENDED_NS] += value;
	if (value >= period)
		return value;
	return random_bits(cpu) * period < value << 32 ? period : 0;
}

/* The thread that is chosen on this CPU has no sample. */
FUSEE_FN void count_unread(struct wait_cpu *cpu, __u32 why)
{
	cpu->tid = 0;
	cpu->counts[why]++;
	cpu->counts[WAIT_UNREAD] += cpu->weight;
}

/* Requests an interrupt of this CPU. What is written to the ring is a header without a content. */
FUSEE_FN int request_interrupt(void)
{
	__u32 cpu = bpf_get_smp_processor_id(), nothing = 0;
	void *ring = fusee_bpf_map_lookup_elem(&sampler_wait_wakes, &cpu);

	return ring ? bpf_ringbuf_output(ring, &nothing, 0, 2 /* BPF_RB_FORCE_WAKEUP */) : -1;
}

FUSEE_OF_CORE int fusee_sampler_take_of(__u32 sampler, void *thread, __u64 weight, __u32 word0,
					__u32 word1)
{
	struct task_struct *task = thread;
	struct sampler_settings *o = settings();
	struct wait_cpu *cpu = wait_cpu(sampler);

	if (!o || !cpu || !is_selected_process(o, task->tgid))
		return -1; /* it was when the thread was remembered */
	cpu->counts[WAIT_CHOSEN]++;
	if (cpu->tid)
		count_unread(cpu, WAIT_LATE);
	cpu->weight = weight;
	cpu->words[0] = word0;
	cpu->words[1] = word1;
	READ_ONCE(cpu->tid) = task->pid; /* last: the interrupt may come inside of the next call */
	if (!request_interrupt())
		return 0;
	count_unread(cpu, WAIT_NO_ROOM);
	return -1;
}

/* ---- the interrupt ---- */

/* The ids of the running thread, if a sampler chose it; 0: none did. Of several samplers that did,
 * the next interrupt is for the others. */
FUSEE_FN __u64 chosen_thread(void)
{
	__u64 ids = bpf_get_current_pid_tgid(), chosen = 0;
	struct wait_cpu *first = wait_cpu(0);

	if (!first)
		return 0;
	for (__u32 i = 0; i < MAX_SAMPLERS && i < fusee_samplers; i++) {
		struct wait_cpu *c = wait_cpu(i);
		__u32 tid = c ? c->tid : 0;

		if (!tid || (tid == (__u32)ids && chosen))
			continue;
		if (tid == (__u32)ids) {
			c->tid = 0;
			first->now = i;
			chosen = ids;
		} else {
			count_unread(c, WAIT_LATE);
		}
	}
	return chosen;
}

/* No sampler that has chosen a thread has its interrupt. */
FUSEE_FN void give_up(void)
{
	for (__u32 i = 0; i < MAX_SAMPLERS && i < fusee_samplers; i++) {
		struct wait_cpu *c = wait_cpu(i);

		if (c && c->tid)
			count_unread(c, WAIT_NO_ROOM);
	}
}

/* The interrupt is over. Another sampler has chosen its thread, too: the next comes at once, before
 * the thread goes on. It cannot be requested before, as this is the same request. Loaded only if
 * there are several samplers. */
SEC("raw_tp/irq_work_exit")
int sampler_again(__u64 *args)
{
	__u32 tid = bpf_get_current_pid_tgid();

	(void)args;
	for (__u32 i = 0; i < MAX_SAMPLERS && i < fusee_samplers; i++) {
		struct wait_cpu *c = wait_cpu(i);

		if (!c || !c->tid || c->tid != tid)
			continue;
		if (request_interrupt())
			give_up();
		return 0;
	}
	return 0;
}

/* Notes the interrupted thread, and what its sampler said of it. */
FUSEE_FN void describe(struct record_tick *r, __u64 ids)
{
	struct wait_cpu *first = wait_cpu(0), *c = first ? wait_cpu(first->now) : 0;

	r->head.pid = ids >> 32;
	r->head.tid = ids;
	r->head.process = 0;
	r->head.flags = RECORD_CHOSEN;
	r->head.sampler = first ? first->now : 0;
	r->period = c ? c->weight : 0;
	r->words[0] = c ? c->words[0] : 0;
	r->words[1] = c ? c->words[1] : 0;
}
#endif

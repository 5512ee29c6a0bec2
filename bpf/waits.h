/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Time off the CPU. At each switch of threads the program notes when the thread that leaves its CPU
 * did so, and decides by the length of its wait whether that of the thread that comes is a sample:
 * for certain from wait_period on, else with the probability of their ratio. A sample stands for as
 * much time as all that were not chosen, so sums are right.
 *
 * At the switch the memory of the other process is still in place, so the stack cannot be read
 * there. The program requests an interrupt of this CPU by waking a ring buffer without
 * readers; it comes when the kernel enables interrupts again, which is right behind the switch,
 * before the thread goes on.
 */
#ifndef BPF_WAITS_H
#define BPF_WAITS_H

#include <fusee/unwinder.bpf.h>

#include "kernel.h"
#include "maps.h"
#include "processes.h"
#include "sample.h"
#include "waiters.h"

#define TASK_INTERRUPTIBLE 1u /* linux/sched.h */
#define TASK_STOPPED 12u      /* by a signal or a debugger */
#define TASK_DEAD 0x80u

struct {
	__uint(type, 6 /* PERCPU_ARRAY */);
	__uint(max_entries, 1);
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

FUSEE_FN struct wait_cpu *wait_cpu(void)
{
	__u32 zero = 0;

	return fusee_bpf_map_lookup_elem(&sampler_wait_cpus, &zero);
}

/* The time by the clock of this CPU's queue, which the scheduler has just read; the same on all
 * CPUs. */
FUSEE_FN __u64 switch_time(struct task_struct *task)
{
	return kernel_has_field(task->se.cfs_rq) ? task->se.cfs_rq->rq->clock : bpf_ktime_get_ns();
}

/* ---- the thread that leaves ---- */

/* The state of a thread that another CPU has woken meanwhile says that it runs. */
FUSEE_FN __u32 state_of(struct task_struct *task)
{
	struct task_struct___before_5_14 *old = (void *)task;
	__u32 state = kernel_has_field(task->__state) ? task->__state : (__u32)old->state;

	if (state & TASK_DEAD)
		return WAIT_STATES;
	if (state & TASK_INTERRUPTIBLE)
		return WAIT_SLEEPING;
	if (state & TASK_STOPPED)
		return WAIT_STOPPED;
	if (state)
		return WAIT_UNINTERRUPTIBLE;
	return task->on_rq ? WAIT_RUNNABLE : WAIT_SLEEPING;
}

FUSEE_FN int is_selected_process(struct sampler_settings *o, __u32 tgid)
{
	struct process_rate *rate = fusee_bpf_map_lookup_elem(&sampler_rates, &tgid);
	__u64 period = rate ? rate->period : o->default_period;

	return period != PERIOD_NONE && period != PERIOD_ON_EXEC;
}

/* Begins to follow a thread that leaves its CPU for the first time. */
FUSEE_FN void follow(struct sampler_settings *o, struct task_struct *task,
		     const struct waiter *first)
{
	__u32 tid = task->pid, tgid = task->tgid;
	struct wait_cpu *cpu;

	if (first->state == WAIT_STATES || (!is_selected_process(o, tgid) && !join_group(o, tgid)))
		return;
	if (!bpf_map_update_elem(&sampler_waiters, &tid, first, 0))
		return;
	READ_ONCE(o->unheld) = 1;
	cpu = wait_cpu();
	if (cpu)
		cpu->counts[WAIT_UNFOLLOWED]++;
}

/* The running thread leaves its CPU. A thread that is followed is so until it ends. */
FUSEE_FN void note_leaving(struct sampler_settings *o, struct task_struct *task, __u64 now)
{
	struct waiter first = {.since = now}, *w;

	if (!task->pid || !may_be_selected(o, task->tgid))
		return;
	first.state = state_of(task);
	w = waiter_of(task);
	if (!w) {
		follow(o, task, &first);
	} else if (first.state == WAIT_STATES) {
		forget_waiter(task->pid);
	} else {
		w->since = now;
		w->state = first.state;
	}
}

/* ---- the thread that comes ---- */

/* For how long waits are samples. */
FUSEE_FN __u64 since_begin(const struct sampler_settings *o)
{
	__u64 began = o->wait_began, now = bpf_ktime_get_ns();

	return now > began ? now - began : 0;
}

/* The length of a wait that had begun before the process was selected, from then on: since then
 * each thread that leaves its CPU is followed. 0: it has not waited, or it is not known. */
FUSEE_FN __u64 length_before(struct sampler_settings *o, struct task_struct *task)
{
	__u64 from = o->wait_began, now = bpf_ktime_get_ns();
	__u32 tgid = task->tgid;
	struct process_rate *rate;

	if (o->groups || READ_ONCE(o->unheld) || !is_selected_process(o, tgid))
		return 0;
	rate = fusee_bpf_map_lookup_elem(&sampler_rates, &tgid);
	if (rate && rate->since > from)
		from = rate->since;
	return task->start_time < from && now > from ? now - from : 0;
}

/* The length of the wait of a thread that is followed. While no waits are samples, threads are not
 * followed, so it may seem to have begun before that. */
FUSEE_FN __u64 length_of(struct sampler_settings *o, const struct waiter *w, __u64 now,
			 __u64 period)
{
	__u64 length = w->since && now > w->since ? now - w->since : 0, most;

	if (length < period)
		return length;
	most = since_begin(o);
	return length < most ? length : most;
}

/* Which part of its wait, of 2^32, the thread has been runnable. */
FUSEE_FN __u32 queued_part(struct task_struct *task, __u64 length)
{
	__u64 since, clock, queued;

	if (!kernel_has_field(task->se.cfs_rq) || !kernel_has_field(task->sched_info))
		return 0;
	since = task->sched_info.last_queued;
	clock = switch_time(task);
	if (!since || clock <= since)
		return 0;
	queued = clock - since;
	if (queued >= length)
		return ~0u;
	while (length >> 32) {
		length >>= 1;
		queued >>= 1;
	}
	return (queued << 32) / length;
}

/* Requests an interrupt of this CPU. */
FUSEE_FN int request_interrupt(void)
{
	__u32 cpu = bpf_get_smp_processor_id(), nothing = 0;
	void *ring = fusee_bpf_map_lookup_elem(&sampler_wait_wakes, &cpu);

	return ring ? bpf_ringbuf_output(ring, &nothing, sizeof(nothing),
					 2 /* BPF_RB_FORCE_WAKEUP */)
		    : -1;
}

FUSEE_FN void choose(struct sampler_settings *o, struct task_struct *task, struct wait_cpu *cpu,
		     __u32 state, __u64 length, __u64 period)
{
	if (length < period && bpf_get_prandom_u32() * period >= length << 32)
		return;
	if (!is_selected_process(o, task->tgid)) /* it was when the thread was followed */
		return;
	cpu->counts[WAIT_CHOSEN]++;
	if (cpu->tid)
		cpu->counts[WAIT_LATE]++;
	cpu->weight = length < period ? period : length;
	cpu->state = state;
	cpu->queued = state == WAIT_RUNNABLE ? 0 : queued_part(task, length);
	cpu->tid = task->pid;
	if (request_interrupt()) {
		cpu->tid = 0;
		cpu->counts[WAIT_NO_ROOM]++;
	}
}

FUSEE_FN void note_coming(struct sampler_settings *o, struct task_struct *task, __u64 now,
			  __u64 period)
{
	__u32 state = WAIT_UNKNOWN;
	struct wait_cpu *cpu;
	struct waiter *w;
	__u64 length;

	if (!task->pid || !may_be_selected(o, task->tgid))
		return;
	w = waiter_of(task);
	if (w) {
		length = length_of(o, w, now, period);
		state = w->state;
		w->since = 0;
	} else {
		length = length_before(o, task);
	}
	cpu = wait_cpu();
	if (!length || !cpu)
		return;
	cpu->counts[WAIT_ENDED]++;
	cpu->counts[WAIT_ENDED_NS] += length;
	choose(o, task, cpu, state, length, period);
}

SEC("tp_btf/sched_switch")
int sampler_switch(__u64 *args)
{
	struct task_struct *leaving = (void *)args[1], *coming = (void *)args[2];
	struct sampler_settings *o = settings();
	__u64 now, period;

	if (!o)
		return 0;
	period = READ_ONCE(o->wait_period);
	if (!period || period >> 32)
		return 0;
	now = switch_time(coming);
	note_leaving(o, leaving, now);
	note_coming(o, coming, now, period);
	return 0;
}

/* ---- the interrupt ---- */

/* The ids of the running thread, if its wait was chosen; 0: it was not. */
FUSEE_FN __u64 chosen_thread(void)
{
	__u64 ids = bpf_get_current_pid_tgid();
	struct wait_cpu *c = wait_cpu();
	__u32 tid;

	if (!c || !c->tid)
		return 0;
	tid = c->tid;
	c->tid = 0;
	if (tid == (__u32)ids)
		return ids;
	c->counts[WAIT_LATE]++;
	return 0;
}

/* Notes the interrupted thread, and its wait. */
FUSEE_FN void describe(struct record_tick *r, __u64 ids)
{
	struct wait_cpu *c = wait_cpu();

	r->head.pid = ids >> 32;
	r->head.tid = ids;
	r->head.process = 0;
	r->head.flags = RECORD_WAIT;
	r->head.share = 0;
	r->period = c ? c->weight : 0;
	r->wait.state = c ? c->state : 0;
	r->wait.queued = c ? c->queued : 0;
}
#endif

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

#define TASK_INTERRUPTIBLE 1u /* linux/sched.h */
#define TASK_STOPPED 12u      /* by a signal or a debugger */
#define TASK_DEAD 0x80u

/* A thread of a selected process that has waited once. Entries are made before they are
 * used: nothing may be allocated where threads are switched. */
struct waiter {
	__u64 since; /* CLOCK_MONOTONIC ns; 0: it is on a CPU */
	__u32 state; /* enum wait_state */
	__u32 pad;
};

struct {
	__uint(type, 1 /* HASH */);
	__uint(max_entries, WAIT_THREADS);
	__type(key, __u32);
	__type(value, struct waiter);
} sampler_waiters SEC(".maps");

/* The wait whose stack is taken when the interrupt comes. */
struct chosen {
	__u64 weight; /* ns */
	__u32 tid;    /* 0: none, or its interrupt came */
	__u32 state, queued, pad;
};

struct {
	__uint(type, 6 /* PERCPU_ARRAY */);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct chosen);
} sampler_chosen SEC(".maps");

struct {
	__uint(type, 6 /* PERCPU_ARRAY */);
	__uint(max_entries, WAIT_RESULT_COUNT);
	__type(key, __u32);
	__type(value, __u64);
} sampler_wait_counts SEC(".maps");

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

FUSEE_FN void count_wait(__u32 result, __u64 n)
{
	__u64 *at = fusee_bpf_map_lookup_elem(&sampler_wait_counts, &result);

	if (at)
		*at += n;
}

FUSEE_FN struct chosen *chosen(void)
{
	__u32 zero = 0;

	return fusee_bpf_map_lookup_elem(&sampler_chosen, &zero);
}

/* ---- the thread that leaves ---- */

/* The state of a thread that another CPU has woken meanwhile says that it runs. */
FUSEE_FN __u32 state_of(struct task_struct *task)
{
	struct task_struct___before_5_14 *old = (void *)task;
	__u32 state = 0;
	long before = 0;
	int queued;

	if (kernel_has_field(task->__state))
		kernel_read(&state, &task->__state);
	else if (!kernel_read(&before, &old->state))
		state = (__u32)before;
	if (state & TASK_DEAD)
		return WAIT_STATES;
	if (state & TASK_INTERRUPTIBLE)
		return WAIT_SLEEPING;
	if (state & TASK_STOPPED)
		return WAIT_STOPPED;
	if (state)
		return WAIT_UNINTERRUPTIBLE;
	return kernel_read(&queued, &task->on_rq) || queued ? WAIT_RUNNABLE : WAIT_SLEEPING;
}

FUSEE_FN int is_selected_process(struct sampler_settings *o, __u32 tgid)
{
	struct process_rate *rate = fusee_bpf_map_lookup_elem(&sampler_rates, &tgid);
	__u64 period = rate ? rate->period : o->default_period;

	return period != PERIOD_NONE && period != PERIOD_ON_EXEC;
}

/* The running thread leaves its CPU. */
FUSEE_FN void note_leaving(struct sampler_settings *o, struct task_struct *task, __u64 now)
{
	__u64 ids = bpf_get_current_pid_tgid();
	struct waiter first = {.since = now}, *w;
	__u32 tid = ids, tgid = ids >> 32;

	if (!ids)
		return;
	w = fusee_bpf_map_lookup_elem(&sampler_waiters, &tid);
	if (!is_selected_process(o, tgid) && !join_group(o, tgid)) {
		if (w)
			w->since = 0;
		return;
	}
	first.state = state_of(task);
	if (first.state == WAIT_STATES) {
		if (w)
			bpf_map_delete_elem(&sampler_waiters, &tid);
	} else if (w) {
		w->since = now;
		w->state = first.state;
	} else if (bpf_map_update_elem(&sampler_waiters, &tid, &first, 0)) {
		count_wait(WAIT_UNFOLLOWED, 1);
		READ_ONCE(o->unheld) = 1;
	}
}

/* ---- the thread that comes ---- */

/* When the wait of a thread began that the program has not seen leaving. 0: it has not waited, or
 * it is not known. */
FUSEE_FN __u64 waited_since(struct sampler_settings *o, struct task_struct *task)
{
	__u64 began = o->wait_began, started;
	__u32 tgid;

	if (o->groups || READ_ONCE(o->unheld) || kernel_read(&tgid, &task->tgid) || !tgid ||
	    !is_selected_process(o, tgid) || kernel_read(&started, &task->start_time))
		return 0;
	return started < began ? began : 0;
}

/* Which part of its wait, of 2^32, the thread has been runnable. */
FUSEE_FN __u32 queued_part(struct task_struct *task, __u64 length)
{
	__u64 clock, since, queued;
	struct cfs_rq *queue;
	struct rq *rq;

	if (!kernel_has_field(task->se.cfs_rq) || !kernel_has_field(task->sched_info) ||
	    kernel_read(&since, &task->sched_info.last_queued) || !since ||
	    kernel_read(&queue, &task->se.cfs_rq) || kernel_read(&rq, &queue->rq) ||
	    kernel_read(&clock, &rq->clock) || clock <= since)
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

FUSEE_FN void choose(struct task_struct *task, const struct waiter *w, __u32 tid, __u64 length,
		     __u64 period)
{
	struct chosen *c = chosen();

	if (length < period && bpf_get_prandom_u32() >= (length << 32) / period)
		return;
	count_wait(WAIT_CHOSEN, 1);
	if (!c)
		return;
	if (c->tid)
		count_wait(WAIT_LATE, 1);
	c->weight = length < period ? period : length;
	c->state = w->state;
	c->queued = w->state == WAIT_RUNNABLE ? 0 : queued_part(task, length);
	c->tid = tid;
	if (request_interrupt()) {
		c->tid = 0;
		count_wait(WAIT_NO_ROOM, 1);
	}
}

FUSEE_FN void note_coming(struct sampler_settings *o, struct task_struct *task, __u64 now,
			  __u64 period)
{
	struct waiter before = {}, *w;
	__u64 since;
	__u32 tid;

	if (kernel_read(&tid, &task->pid) || !tid)
		return;
	w = fusee_bpf_map_lookup_elem(&sampler_waiters, &tid);
	since = w ? w->since : waited_since(o, task);
	if (!since || since >= now)
		return;
	if (w)
		w->since = 0;
	else
		w = &before;
	count_wait(WAIT_ENDED, 1);
	count_wait(WAIT_ENDED_NS, now - since);
	choose(task, w, tid, now - since, period);
}

SEC("raw_tp/sched_switch")
int sampler_switch(__u64 *args)
{
	struct sampler_settings *o = settings();
	__u64 now, period;

	if (!o)
		return 0;
	period = READ_ONCE(o->wait_period);
	if (!period || period >> 32)
		return 0;
	now = bpf_ktime_get_ns();
	note_leaving(o, (void *)args[1], now);
	note_coming(o, (void *)args[2], now, period);
	return 0;
}

/* ---- the interrupt ---- */

/* The ids of the running thread, if its wait was chosen; 0: it was not. */
FUSEE_FN __u64 chosen_thread(void)
{
	__u64 ids = bpf_get_current_pid_tgid();
	struct chosen *c = chosen();
	__u32 tid;

	if (!c || !c->tid)
		return 0;
	tid = c->tid;
	c->tid = 0;
	if (tid == (__u32)ids)
		return ids;
	count_wait(WAIT_LATE, 1);
	return 0;
}

/* Notes the interrupted thread, and its wait. */
FUSEE_FN void describe(struct record_tick *r, __u64 ids)
{
	struct chosen *c = chosen();

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

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Time off the CPU. At each switch of threads the program keeps when the thread that leaves its CPU
 * did so, and knows the length of the wait of the thread that comes, which is the value of a
 * sample.
 */
#include <fusee/sampler.bpf.h>

#include "state.h"

#define TASK_INTERRUPTIBLE 1u /* linux/sched.h */
#define TASK_STOPPED 12u      /* by a signal or a debugger */
#define TASK_DEAD 0x80u

/* ---- the kernel's structs ---- */

/* A CPU's queue of threads. */
struct rq {
	__u64 clock;
} FUSEE_KERNEL_TYPE;

struct cfs_rq {
	struct rq *rq; /* with CONFIG_FAIR_GROUP_SCHED */
} FUSEE_KERNEL_TYPE;

struct sched_entity {
	struct cfs_rq *cfs_rq; /* with CONFIG_FAIR_GROUP_SCHED */
} FUSEE_KERNEL_TYPE;

struct sched_info {
	unsigned long long
		last_queued; /* rq.clock when a runnable thread's wait for its CPU began */
} FUSEE_KERNEL_TYPE;

struct task_struct {
	int pid;
	unsigned int __state;         /* 5.14 */
	int on_rq;                    /* 0: not in a queue of threads */
	__u64 start_time;             /* CLOCK_MONOTONIC ns */
	struct sched_info sched_info; /* with CONFIG_SCHED_INFO */
	struct sched_entity se;
} FUSEE_KERNEL_TYPE;

struct task_struct___before_5_14 {
	long state;
} FUSEE_KERNEL_TYPE;

/* ---- what is kept of a thread ---- */

#define SINCE 0 /* switch_time(); 0: it is on a CPU */
#define STATE 1 /* enum offcpu_state */

/* The time by the clock of this CPU's queue, which the scheduler has just read; the same on all
 * CPUs. */
FUSEE_FN __u64 switch_time(struct task_struct *task)
{
	return FUSEE_KERNEL_HAS(task->se.cfs_rq) ? task->se.cfs_rq->rq->clock
						 : fusee_sampler_time();
}

/* ---- the thread that leaves ---- */

/* The state of a thread that another CPU has woken meanwhile says that it runs. */
FUSEE_FN __u32 state_of(struct task_struct *task)
{
	struct task_struct___before_5_14 *old = (void *)task;
	__u32 state = FUSEE_KERNEL_HAS(task->__state) ? task->__state : (__u32)old->state;

	if (state & TASK_DEAD)
		return OFFCPU_STATES;
	if (state & TASK_INTERRUPTIBLE)
		return OFFCPU_SLEEPING;
	if (state & TASK_STOPPED)
		return OFFCPU_STOPPED;
	if (state)
		return OFFCPU_UNINTERRUPTIBLE;
	return task->on_rq ? OFFCPU_RUNNABLE : OFFCPU_SLEEPING;
}

/* The running thread of a selected process leaves its CPU. A thread that is followed is so until
 * it ends. */
FUSEE_FN void note_leaving(struct task_struct *task, __u64 now)
{
	struct fusee_thread_memory first = {0}, *m;
	__u32 state = state_of(task);

	m = fusee_sampler_memory(task);
	if (m && state == OFFCPU_STATES) {
		fusee_sampler_forget(task);
	} else if (m) {
		m->word[SINCE] = now;
		m->word[STATE] = state;
	} else if (state != OFFCPU_STATES) {
		first.word[SINCE] = now;
		first.word[STATE] = state;
		fusee_sampler_remember(task, &first);
	}
}

/* ---- the thread that comes ---- */

/* The length of a wait that had begun before the process was selected, from then on: since then
 * each thread that leaves its CPU is followed. 0: it has not waited, or it is not known. */
FUSEE_FN __u64 length_before(struct task_struct *task)
{
	__u64 from = fusee_sampler_complete_since(task), now = fusee_sampler_time();

	return from && task->start_time < from && now > from ? now - from : 0;
}

/* The length of the wait of a thread that is followed. While no samples are taken, threads are not
 * followed, so it may seem to have begun before that. */
FUSEE_FN __u64 length_of(__u64 since, __u64 now, __u64 period)
{
	__u64 length = since && now > since ? now - since : 0, from, most;

	if (length < period)
		return length;
	from = fusee_sampler_began();
	most = fusee_sampler_time();
	most = most > from ? most - from : 0;
	return length < most ? length : most;
}

/* Which part of its wait, of 2^32, the thread has been runnable. */
FUSEE_FN __u32 queued_part(struct task_struct *task, __u64 length)
{
	__u64 since, clock, queued;

	if (!FUSEE_KERNEL_HAS(task->se.cfs_rq) || !FUSEE_KERNEL_HAS(task->sched_info))
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

FUSEE_FN void note_coming(struct task_struct *task, __u64 now, __u64 period)
{
	struct fusee_thread_memory *m;
	__u64 length, weight;
	__u32 state = OFFCPU_UNKNOWN;

	m = fusee_sampler_memory(task);
	if (m) {
		length = length_of(m->word[SINCE], now, period);
		state = m->word[STATE];
		m->word[SINCE] = 0;
	} else {
		length = length_before(task);
	}
	weight = length ? fusee_sampler_chance(length) : 0;
	if (weight)
		fusee_sampler_take(task, weight, state,
				   state == OFFCPU_RUNNABLE ? 0 : queued_part(task, length));
}

FUSEE_FN void at_switch(__u64 *args)
{
	const struct fusee_scope *scope = fusee_sampler_scope();
	struct task_struct *leaving = (void *)args[1], *coming = (void *)args[2];
	__u64 period = scope ? scope->period : 0;

	if (!period)
		return;
	/* The idle thread has no pid. */
	if (leaving->pid && fusee_sampler_selected(scope, leaving))
		note_leaving(leaving, switch_time(coming));
	if (coming->pid && fusee_sampler_selected(scope, coming))
		note_coming(coming, switch_time(coming), period);
}

FUSEE_SAMPLER_PROGRAM(offcpu, "tp_btf/sched_switch", at_switch);

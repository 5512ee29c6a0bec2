/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Counts the ticks of each CPU's own event, so that user space knows how many were due. */
#ifndef BPF_CPU_TICKS_H
#define BPF_CPU_TICKS_H

#include <fusee/unwinder.bpf.h>

#include "kernel.h"
#include "maps.h"

struct {
	__uint(type, 6 /* PERCPU_ARRAY */);
	__uint(max_entries, MAX_CPU_EVENTS);
	__type(key, __u32);
	__type(value, struct cpu_ticks);
} sampler_cpu_ticks SEC(".maps");

struct {
	__uint(type, 1 /* HASH */);
	__uint(max_entries, MAX_CPU_EVENTS);
	__type(key, __u64);
	__type(value, __u32);
} sampler_cpu_periods SEC(".maps");

#define NO_CPU_EVENT MAX_CPU_EVENTS

/* The index of the CPUs' events that have this period; NO_CPU_EVENT: a thread's has. */
FUSEE_FN __u32 cpu_event_of(const struct sampler_settings *o, __u64 period)
{
	__u32 *index;

	if (o->cpu_period && period == o->cpu_period)
		return 0;
	if (!READ_ONCE(o->more_periods))
		return NO_CPU_EVENT;
	index = fusee_bpf_map_lookup_elem(&sampler_cpu_periods, &period);
	return index ? *index : NO_CPU_EVENT;
}

/* A number that changes when this CPU becomes idle. 0: the kernel does not say. */
FUSEE_FN __u64 idle_mark(struct task_struct *task)
{
	struct cfs_rq *queue;
	struct task_struct *idle;
	__u64 clock = 0, start = 0;
	struct rq *rq;

	if (!kernel_has_field(task->se.cfs_rq) || kernel_read(&queue, &task->se.cfs_rq) ||
	    kernel_read(&rq, &queue->rq))
		return 0;
	if (kernel_has_field(rq->clock_idle) && kernel_read(&clock, &rq->clock_idle))
		return 0;
	if (kernel_read(&idle, &rq->idle) || kernel_read(&start, &idle->se.exec_start))
		return 0;
	return clock + start;
}

/* For how long the running thread has been on this CPU, in ns. The scheduler's count may be
 * RUNTIME_AGE_NS old. */
FUSEE_FN __u64 on_cpu(struct task_struct *task)
{
	__u64 runtime, before;

	if (kernel_read(&runtime, &task->se.sum_exec_runtime) ||
	    kernel_read(&before, &task->se.prev_sum_exec_runtime))
		return 0;
	return runtime - before;
}

/* Ticks that did not come between the last tick and the current tick. Where the CPU was idle
 * meanwhile, only those since the running thread is on it: some CPUs do not run the program in idle
 * time. */
FUSEE_FN __s64 missed_ticks(const struct cpu_ticks *t, __u64 now, __u64 ran, int was_idle)
{
	__u64 period = t->period, from, to;
	__s64 missed;

	if (!period)
		return 0;
	from = (t->last - t->first + period / 2) / period;
	to = (now - t->first + period / 2) / period;
	missed = (__s64)(to - from) - 1;
	if (was_idle && missed > 0 && ran / period < (__u64)missed)
		missed = (__s64)(ran / period);
	return missed;
}

/* Of the missed ticks those that the running thread was on the CPU for: others were of another, or
 * of another machine that the hypervisor ran. A tick that came too early takes one back. */
FUSEE_FN __s64 missed_of_thread(__s64 missed, __s64 before, __u64 ran, __u64 period)
{
	if (missed < 0)
		return before > 0 ? -1 : 0;
	if (period && ran / period < (__u64)missed)
		return (__s64)(ran / period);
	return missed;
}

FUSEE_FN struct cpu_ticks *cpu_ticks(__u32 index)
{
	return fusee_bpf_map_lookup_elem(&sampler_cpu_ticks, &index);
}

FUSEE_FN void note_cpu_tick(const struct sampler_settings *o, __u32 index, __u64 period,
			    int is_idle)
{
	struct task_struct *task = bpf_get_current_task();
	__u64 now = bpf_ktime_get_ns(), mark = idle_mark(task), ran = is_idle ? 0 : on_cpu(task);
	struct cpu_ticks *t = cpu_ticks(index);
	__s64 missed;
	__u64 gap;

	if (!t)
		return;
	gap = now - t->last;
	if (!t->first || t->stretch != o->stretch || t->period != period ||
	    (gap > GAP_NS + 2 * t->period && ran + RUNTIME_AGE_NS < gap)) {
		t->first = now;
		t->period = period;
		t->stretch = o->stretch;
		t->newest = 0;
	} else {
		missed = missed_ticks(t, now, ran, is_idle || t->is_idle || t->idle_mark != mark);
		t->newest = missed_of_thread(missed, t->newest, ran, t->period);
		t->missed += missed;
	}
	t->last = now;
	t->idle_mark = mark;
	t->is_idle = is_idle;
}

/* The newest tick of the CPU's event is a sample. */
FUSEE_FN void note_selected_tick(__u32 index)
{
	struct cpu_ticks *t = cpu_ticks(index);

	if (t)
		t->missed_of_selected += t->newest;
}

/* When a tick began that is to be timed; 0: it is not. */
FUSEE_FN __u64 begin_time(const struct sampler_settings *o)
{
	return READ_ONCE(o->timed) ? bpf_ktime_get_ns() : 0;
}

FUSEE_FN void note_time(__u64 began)
{
	struct cpu_ticks *t = began ? cpu_ticks(0) : 0;

	if (t)
		t->spent += bpf_ktime_get_ns() - began;
}
#endif

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The threads whose waits are followed: since when each waits. All of them are looked for at each
 * switch of threads, so a thread that has had a sample has its entry in storage of its own, which
 * the kernel finds by a pointer of the thread (Linux 5.13; used from 5.15 on). Storage is
 * allocated, which is not safe at a switch, where the queue of threads is locked; it is made in the
 * interrupt that takes the thread's first sample. Before that, and on older kernels, the entry is
 * in a hash map.
 */
#ifndef BPF_WAITERS_H
#define BPF_WAITERS_H

#include <fusee/unwinder.bpf.h>

#include "kernel.h"
#include "maps.h"
#include "processes.h"

struct waiter {
	__u64 since; /* switch_time(); 0: it is on a CPU */
	__u32 state; /* enum wait_state */
	__u32 pad;
};

/* Of threads without storage, by their ids. Entries are made before they are used: nothing may be
 * allocated where threads are switched. */
struct {
	__uint(type, 1 /* HASH */);
	__uint(max_entries, WAIT_THREADS);
	__type(key, __u32);
	__type(value, struct waiter);
} sampler_waiters SEC(".maps");

struct {
	__uint(type, 29 /* TASK_STORAGE */);
	__uint(map_flags, 1 /* NO_PREALLOC */);
	__uint(max_entries, 0);
	__type(key, int);
	__type(value, struct waiter);
} sampler_storage SEC(".maps");

/* false at least of a process that is not selected, unless there are groups: of few others. */
FUSEE_FN int may_be_selected(const struct sampler_settings *o, __u32 tgid)
{
	struct rate_counts *counts = rate_counts();

	return o->default_period != PERIOD_NONE || o->groups ||
	       (counts && READ_ONCE(counts->of[tgid % RATE_COUNTS]));
}

/* NULL: the thread is not followed. */
FUSEE_FN struct waiter *waiter_of(struct task_struct *task)
{
	struct waiter *w = 0;
	__u32 tid = task->pid;

	if (kernel_has(task_pt_regs))
		w = bpf_task_storage_get(&sampler_storage, task, 0, 0);
	return w ? w : fusee_bpf_map_lookup_elem(&sampler_waiters, &tid);
}

/* Storage ends with its thread. */
FUSEE_FN void forget_waiter(__u32 tid)
{
	bpf_map_delete_elem(&sampler_waiters, &tid);
}

/* The running thread has a sample, and may have more. */
FUSEE_FN void give_storage(void)
{
	struct task_struct *task;

	if (!kernel_has(task_pt_regs) || !kernel_has(get_current_task_btf))
		return;
	task = bpf_get_current_task_btf();
	if (!bpf_task_storage_get(&sampler_storage, task, 0, 0) &&
	    bpf_task_storage_get(&sampler_storage, task, 0, 1 /* create */))
		forget_waiter(task->pid);
}
#endif

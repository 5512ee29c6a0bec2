/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What a sampler keeps of threads. It is looked for at each event of a sampler, so a thread that
 * has had a sample has it in storage of its own, which the kernel finds by a pointer of the thread
 * (Linux 5.13; used from 5.15 on). Storage is allocated, which is not safe at a switch, where the
 * queue of threads is locked; it is made in the interrupt that takes the thread's first sample.
 * Before that, and on older kernels, the memory is in a hash map.
 */
#ifndef BPF_WAITERS_H
#define BPF_WAITERS_H

#include <fusee/sampler.bpf.h>

#include "kernel.h"
#include "maps.h"
#include "processes.h"

/* Of threads without storage, by their ids. Entries are made before they are used: nothing may be
 * allocated where threads are switched. */
struct {
	__uint(type, 1 /* HASH */);
	__uint(max_entries, WAIT_THREADS);
	__type(key, __u32);
	__type(value, struct fusee_thread_memory);
} sampler_waiters SEC(".maps");

struct {
	__uint(type, 29 /* TASK_STORAGE */);
	__uint(map_flags, 1 /* NO_PREALLOC */);
	__uint(max_entries, 0);
	__type(key, int);
	__type(value, struct fusee_thread_memory);
} sampler_storage SEC(".maps");

FUSEE_FN struct fusee_thread_memory *memory_in_map(__u32 tid)
{
	return fusee_bpf_map_lookup_elem(&sampler_waiters, &tid);
}

FUSEE_OF_CORE struct fusee_thread_memory *fusee_sampler_memory(void *thread)
{
	struct task_struct *task = thread;
	struct fusee_thread_memory *m = 0;

	if (kernel_has(task_pt_regs))
		m = bpf_task_storage_get(&sampler_storage, task, 0, 0);
	return m ? m : memory_in_map(task->pid);
}

/* Storage ends with its thread. */
FUSEE_FN void forget_waiter(__u32 tid)
{
	bpf_map_delete_elem(&sampler_waiters, &tid);
}

FUSEE_OF_CORE int fusee_sampler_forget(void *thread)
{
	struct task_struct *task = thread;

	forget_waiter(task->pid);
	return 0;
}

/* The running thread has a sample, and may have more. */
FUSEE_FN void give_storage(void)
{
	struct fusee_thread_memory *m;
	struct task_struct *task;

	if (!kernel_has(task_pt_regs) || !kernel_has(get_current_task_btf))
		return;
	task = bpf_get_current_task_btf();
	m = memory_in_map(task->pid);
	if (m && bpf_task_storage_get(&sampler_storage, task, m, 1 /* create */))
		forget_waiter(task->pid);
}
#endif

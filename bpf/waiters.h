/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What a sampler keeps of threads. It is looked for at each event of a sampler, so nearly every
 * thread has a slot of an array, by the low bits of its id. If another thread has the slot, the
 * memory is in a hash map until the thread has had a sample, and then in storage of its own, which
 * the kernel finds by a pointer of the thread (Linux 5.13; used from 5.15 on). Storage is
 * allocated, which is not safe at a switch, where the queue of threads is locked; it is made in the
 * interrupt that takes the thread's first sample. Older kernels have the hash map alone.
 */
#ifndef BPF_WAITERS_H
#define BPF_WAITERS_H

#include <fusee/sampler.bpf.h>

#include "kernel.h"
#include "maps.h"
#include "processes.h"

/* Each sampler has maps of its own, so that none takes the room of another. Those that are not used
 * are not made. The number of a sampler is a constant for the verifier, which omits all branches
 * but one. */
#define SAMPLER_NUMBERS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)

struct waiter_slot {
	__u64 tid; /* 0: it is free */
	struct fusee_thread_memory memory;
};

/* sampler_waiters: of threads without slot and storage, by their ids, and keys of slots that are in
 * use, which so belong to one thread each. Entries are made before they are used: nothing may be
 * allocated where threads are switched. */
#define MAPS_OF_SAMPLER(n)                                      \
	struct {                                                \
		__uint(type, 2 /* ARRAY */);                    \
		__uint(max_entries, WAIT_SLOTS);                \
		__type(key, __u32);                             \
		__type(value, struct waiter_slot);              \
	} sampler_slots_##n SEC(".maps");                       \
	struct {                                                \
		__uint(type, 1 /* HASH */);                     \
		__uint(max_entries, WAIT_THREADS + WAIT_SLOTS); \
		__type(key, __u32);                             \
		__type(value, struct fusee_thread_memory);      \
	} sampler_waiters_##n SEC(".maps");                     \
	struct {                                                \
		__uint(type, 29 /* TASK_STORAGE */);            \
		__uint(map_flags, 1 /* NO_PREALLOC */);         \
		__uint(max_entries, 0);                         \
		__type(key, int);                               \
		__type(value, struct fusee_thread_memory);      \
	} sampler_storage_##n SEC(".maps");

SAMPLER_NUMBERS(MAPS_OF_SAMPLER)

/* A call of a helper for each: its map is then known wherever it is called. */
#define WAITER_IN_MAP(n)  \
	if (sampler == n) \
		return fusee_bpf_map_lookup_elem(&sampler_waiters_##n, &tid);
#define WAITER_IN_STORAGE(n) \
	if (sampler == n)    \
		return bpf_task_storage_get(&sampler_storage_##n, task, first, flags);
#define WAITER_IN_SLOT(n) \
	if (sampler == n) \
		return fusee_bpf_map_lookup_elem(&sampler_slots_##n, &slot);
#define WAITER_REMEMBERED(n) \
	if (sampler == n)    \
		return bpf_map_update_elem(&sampler_waiters_##n, &key, first, flags);
#define WAITER_FORGOTTEN(n) \
	if (sampler == n)   \
		return bpf_map_delete_elem(&sampler_waiters_##n, &key);

FUSEE_FN struct fusee_thread_memory *memory_in_map(__u32 sampler, __u32 tid)
{
	SAMPLER_NUMBERS(WAITER_IN_MAP)
	return 0;
}

/* Storage ends with its thread. */
FUSEE_FN struct fusee_thread_memory *memory_in_storage(__u32 sampler, struct task_struct *task,
						       void *first, __u64 flags)
{
	SAMPLER_NUMBERS(WAITER_IN_STORAGE)
	return 0;
}

FUSEE_FN struct waiter_slot *slot_of(__u32 sampler, __u32 tid)
{
	__u32 slot = tid % WAIT_SLOTS;

	SAMPLER_NUMBERS(WAITER_IN_SLOT)
	return 0;
}

FUSEE_FN long add_waiter(__u32 sampler, __u32 key, const struct fusee_thread_memory *first,
			 __u64 flags)
{
	SAMPLER_NUMBERS(WAITER_REMEMBERED)
	return -1;
}

FUSEE_FN long remove_waiter(__u32 sampler, __u32 key)
{
	SAMPLER_NUMBERS(WAITER_FORGOTTEN)
	return -1;
}

/* The key of a thread's slot, which is no thread's id. */
FUSEE_FN __u32 slot_key(__u32 tid)
{
	return 1u << 31 | tid % WAIT_SLOTS;
}

/* The slot is the thread's if the map has room for its key, and has it not yet. */
FUSEE_FN long remember_waiter(__u32 sampler, __u32 tid, const struct fusee_thread_memory *first)
{
	struct waiter_slot *slot = slot_of(sampler, tid);

	if (!slot || slot->tid ||
	    add_waiter(sampler, slot_key(tid), first, 1 /* unless there is one */))
		return add_waiter(sampler, tid, first, 0);
	slot->memory = *first;
	READ_ONCE(slot->tid) = tid;
	return 0;
}

FUSEE_FN long forget_waiter(__u32 sampler, __u32 tid)
{
	struct waiter_slot *slot = slot_of(sampler, tid);

	if (!slot || slot->tid != tid)
		return remove_waiter(sampler, tid);
	READ_ONCE(slot->tid) = 0;
	return remove_waiter(sampler, slot_key(tid));
}

FUSEE_FN void forget_waiters(__u32 tid)
{
#define FORGET(n)               \
	if (n < fusee_samplers) \
		forget_waiter(n, tid);
	SAMPLER_NUMBERS(FORGET)
#undef FORGET
}

FUSEE_OF_CORE struct fusee_thread_memory *fusee_sampler_memory_of(__u32 sampler, void *thread)
{
	struct task_struct *task = thread;
	__u32 tid = task->pid;
	struct waiter_slot *slot = slot_of(sampler, tid);
	struct fusee_thread_memory *m = 0;

	if (slot && slot->tid == tid)
		return &slot->memory;
	if (kernel_has(task_pt_regs))
		m = memory_in_storage(sampler, task, 0, 0);
	return m ? m : memory_in_map(sampler, tid);
}

FUSEE_OF_CORE int fusee_sampler_forget_of(__u32 sampler, void *thread)
{
	struct task_struct *task = thread;

	forget_waiter(sampler, task->pid);
	return 0;
}

FUSEE_FN void move_to_storage(__u32 sampler, struct task_struct *task)
{
	struct fusee_thread_memory *m = memory_in_map(sampler, task->pid);

	if (m && memory_in_storage(sampler, task, m, 1 /* create */))
		forget_waiter(sampler, task->pid);
}

/* The running thread has a sample, and may have more. */
FUSEE_FN void give_storage(void)
{
	struct task_struct *task;

	if (!kernel_has(task_pt_regs) || !kernel_has(get_current_task_btf))
		return;
	task = bpf_get_current_task_btf();
#define MOVE(n)                 \
	if (n < fusee_samplers) \
		move_to_storage(n, task);
	SAMPLER_NUMBERS(MOVE)
#undef MOVE
}
#endif

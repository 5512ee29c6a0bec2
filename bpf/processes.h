/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the kernel knows of processes: programs that keep it right at once on fork, exec, exit, and
 * where memory is given out at the addresses of known code. User space sees these events later.
 */
#ifndef BPF_PROCESSES_H
#define BPF_PROCESSES_H

#include <fusee/unwinder.bpf.h>

#include "chunks.h"
#include "kernel.h"
#include "maps.h"

/* This map and sampler_rates allocate their entries when they are added, if the kernel allows that:
 * programs_may_allocate(). */
struct {
	__uint(type, 1 /* HASH */);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct pid_entry);
} sampler_pids SEC(".maps");

struct {
	__uint(type, 1 /* HASH */);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct process_rate);
} sampler_rates SEC(".maps");

struct {
	__uint(type, 2 /* ARRAY */);
	__uint(max_entries, 1);
	__uint(map_flags, 1024 /* MMAPABLE */);
	__type(key, __u32);
	__type(value, struct sampler_settings);
} sampler_settings SEC(".maps");

struct {
	__uint(type, 1 /* HASH */);
	__uint(max_entries, MAX_OWN_THREADS);
	__type(key, __u32);
	__type(value, __u32);
} sampler_threads SEC(".maps");

struct {
	__uint(type, 1 /* HASH */);
	__uint(max_entries, MAX_GROUPS);
	__type(key, __u64);
	__type(value, __u32);
} sampler_groups SEC(".maps");

FUSEE_FN struct sampler_settings *settings(void)
{
	__u32 zero = 0;

	return fusee_bpf_map_lookup_elem(&sampler_settings, &zero);
}

/* ---- entries of sampler_rates ---- */

#ifdef SAMPLER_OF_WAITS
#include <fusee/sampler.bpf.h>

/* How many samplers of plugins there are: set before the object is loaded, so that the verifier
 * knows it. */
static const volatile __u32 fusee_samplers __attribute__((used)) = 1;

FUSEE_FN void forget_waiters(__u32 tid); /* waiters.h */

/* By the number of the sampler: of sampler_rates, how many entries there are by pid, and more. */
struct {
	__uint(type, 2 /* ARRAY */);
	__uint(max_entries, MAX_SAMPLERS);
	__uint(map_flags, 1024 /* MMAPABLE */);
	__type(key, __u32);
	__type(value, struct fusee_scope);
} sampler_scope SEC(".maps");

FUSEE_FN struct fusee_scope *scope_of(__u32 sampler)
{
	return fusee_bpf_map_lookup_elem(&sampler_scope, &sampler);
}

FUSEE_FN void count_rates(__u32 tgid, __u32 more)
{
	for (__u32 i = 0; i < MAX_SAMPLERS && i < fusee_samplers; i++) {
		struct fusee_scope *s = scope_of(i);

		if (s)
			__sync_fetch_and_add(&s->entries[tgid % FUSEE_SAMPLER_ENTRIES], more);
	}
}
#else
FUSEE_FN void forget_waiters(__u32 tid)
{
	(void)tid;
}

FUSEE_FN void count_rates(__u32 tgid, __u32 more)
{
	(void)tgid;
	(void)more;
}
#endif

/* By process: what its memory is called, until it execs or ends (inuse.h). Written by the object of
 * probes, while another may follow processes. */
struct {
	__uint(type, 1 /* HASH */);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} sampler_spaces SEC(".maps");

FUSEE_FN void forget_space(__u32 tgid)
{
	bpf_map_delete_elem(&sampler_spaces, &tgid);
}

/* 0 or -1. */
FUSEE_FN int put_rate(__u32 tgid, const struct process_rate *rate)
{
	if (!bpf_map_update_elem(&sampler_rates, &tgid, rate, 1 /* unless there is one */)) {
		count_rates(tgid, 1);
		return 0;
	}
	return bpf_map_update_elem(&sampler_rates, &tgid, rate, 2 /* if there is one */) ? -1 : 0;
}

FUSEE_FN void remove_rate(__u32 tgid)
{
	if (!bpf_map_delete_elem(&sampler_rates, &tgid))
		count_rates(tgid, -1);
}

__attribute__((noinline)) int sampler_wake_exec(__u32 tgid); /* wake.h */

FUSEE_FN void forget_thread(__u32 tid)
{
	struct sampler_settings *o = settings();

	if (o && o->own_threads)
		bpf_map_delete_elem(&sampler_threads, &tid);
	forget_waiters(tid);
}

FUSEE_FN void inherit_rate(__u32 from, __u32 to)
{
	struct process_rate *rate = fusee_bpf_map_lookup_elem(&sampler_rates, &from), copy;
	struct sampler_settings *o;

	if (rate) {
		copy = *rate;
		o = settings();
		if (put_rate(to, &copy) && o)
			o->unfollowed++;
	} else {
		remove_rate(to);
	}
}

/* Is the running thread in one of the groups, and not of the recorder? */
FUSEE_FN int is_in_group(__u32 own)
{
	struct task_struct *task = bpf_get_current_task(), *parent;
	__u32 tgid;

	/* Programs of perf events may ask for the group since 5.15, as for task_pt_regs. */
	if (!kernel_has_field(task->cgroups) || !kernel_has(task_pt_regs))
		return 0;
	if (kernel_read(&parent, &task->real_parent) || kernel_read(&tgid, &parent->tgid) ||
	    tgid == own || (__u32)(bpf_get_current_pid_tgid() >> 32) == own)
		return 0;
	for (int level = 0; level < GROUP_LEVELS; level++) {
		__u64 id = bpf_get_current_ancestor_cgroup_id(level);

		if (!id) /* deeper than its group */
			return 0;
		if (fusee_bpf_map_lookup_elem(&sampler_groups, &id))
			return 1;
	}
	return 0;
}

/* The rate of a running process that has none: it may have joined a group. NULL: it has not. */
FUSEE_FN struct process_rate *join_group(struct sampler_settings *o, __u32 tgid)
{
	const struct process_rate any = {.period = PERIOD_ANY};

	if (!o->groups || !is_in_group(o->own))
		return 0;
	if (put_rate(tgid, &any)) {
		o->unfollowed++;
		return 0;
	}
	__sync_fetch_and_add(&o->joined, 1); /* it must not go back: CPUs add at once */
	return fusee_bpf_map_lookup_elem(&sampler_rates, &tgid);
}

/* A child has its parent's rate, and runs its code at the same addresses. */
SEC("raw_tp/sched_process_fork")
int sampler_fork(__u64 *args)
{
	struct task_struct *parent = (void *)args[0], *child = (void *)args[1];
	__u32 from, to, thread;
	struct pid_entry *entry, copy;

	if (kernel_read(&from, &parent->tgid) || kernel_read(&to, &child->tgid) ||
	    kernel_read(&thread, &child->pid) || to != thread)
		return 0;
	inherit_rate(from, to);
	entry = fusee_bpf_map_lookup_elem(&sampler_pids, &from);
	if (entry) {
		copy = *entry;
		copy.inherited = 1;
		bpf_map_update_elem(&sampler_pids, &to, &copy, 0);
	} else {
		bpf_map_delete_elem(&sampler_pids, &to);
	}
	return 0;
}

/* Are ticks of this process samples, as far as it is known now? */
FUSEE_FN int has_samples(const struct process_rate *rate)
{
	struct sampler_settings *o = settings();

	return o && (rate ? rate->period : o->default_period) != PERIOD_NONE;
}

/* The process runs another program, whose code is unknown. A rate stays; but that the program
 * before, a shell maybe, was not sampled does not hold for the new program. A thread's own events
 * may have ended (a setuid program). */
SEC("raw_tp/sched_process_exec")
int sampler_exec(__u64 *args)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct process_rate *rate = fusee_bpf_map_lookup_elem(&sampler_rates, &tgid);

	if (rate && rate->period == PERIOD_ON_EXEC)
		rate->period = PERIOD_ANY;
	else if (rate && rate->period == PERIOD_NONE)
		remove_rate(tgid);
	forget_space(tgid);
	forget_thread(tgid);
	forget_thread((__u32)args[1]); /* the thread that exec'ed; it has its process's id now */
	bpf_map_delete_elem(&sampler_pids, &tgid);
	rate = fusee_bpf_map_lookup_elem(&sampler_rates, &tgid);
	if (has_samples(rate))
		sampler_wake_exec(tgid);
	return 0;
}

/* The thread's own events end now; from 6.16 on its memory is given back only then. */
SEC("raw_tp/sched_process_exit")
int sampler_exit(__u64 *args)
{
	struct task_struct *task = (void *)args[0];
	struct signal_struct *signal;
	int live;

	forget_thread((__u32)bpf_get_current_pid_tgid());
	if (!kernel_read(&signal, &task->signal) && !kernel_read(&live, &signal->live.counter) &&
	    live <= 0)
		forget_space(bpf_get_current_pid_tgid() >> 32);
	return 0;
}

/* The process has used its last CPU time and was waited for. */
SEC("raw_tp/sched_process_free")
int sampler_free(__u64 *args)
{
	struct task_struct *task = (void *)args[0];
	__u32 tgid, tid;

	if (kernel_read(&tgid, &task->tgid) || kernel_read(&tid, &task->pid) || tgid != tid)
		return 0;
	bpf_map_delete_elem(&sampler_pids, &tgid);
	remove_rate(tgid);
	return 0;
}

/*
 * Memory is given out at free addresses. Where code is known a library was unmapped, and another
 * may follow. Stacks that pass through the range are not unwound in the kernel until user space
 * knows what is mapped there now.
 */
SEC("raw_tp/vm_unmapped_area")
int sampler_mapped(__u64 *args)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct vm_unmapped_area_info *info = (void *)args[1];
	struct pid_entry *entry = fusee_bpf_map_lookup_elem(&sampler_pids, &tgid);
	__u64 at = args[0], now;
	enum changed_range range;
	struct map_chunk *c;
	unsigned long len;

	if (!entry || at > (__u64)-4096 || kernel_read(&len, &info->length))
		return 0;
	c = chunk_at(entry->chunk);
	if (!c)
		return 0;
	if (entry->inherited) { /* the parent's code is still mapped in the parent */
		if (holds_code(entry->chunk, at, at + len))
			bpf_map_delete_elem(&sampler_pids, &tgid);
		return 0;
	}
	if (c->process != entry->process)
		return 0;
	now = bpf_ktime_get_ns();
	range = note_changed(c, entry->chunk, at, at + len, now);
	if (range == CHANGED_NONE)
		return 0;
	if (range == CHANGED_UNKNOWN) {
		note_unmarked(c, at, at + len);
		READ_ONCE(c->blurred) = now;
	}
	READ_ONCE(c->changed) = now;
	c = chunk_at(0);
	if (c)
		READ_ONCE(c->changed) = now;
	return 0;
}
#endif

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * fusee/sampler.bpf.h - what the BPF half of a sampler sees.
 *
 * A sampler is a program at a raw tracepoint. It decides that the stack of a thread is a sample,
 * and of which value; the core takes the stack, in an interrupt of this CPU that comes as soon as
 * the kernel allows interrupts: in the same thread, or, at a switch of threads, in the thread that
 * comes, before it goes on.
 *
 *	static void forked(__u64 *args)
 *	{
 *		const struct fusee_scope *scope = fusee_sampler_scope();
 *		struct task_struct *task = (void *)args[0];
 *		__u64 weight;
 *
 *		if (!scope || !scope->period || !fusee_sampler_selected(scope, task))
 *			return;
 *		weight = fusee_sampler_chance(1);
 *		if (weight)
 *			fusee_sampler_take(task, weight, 0, 0);
 *	}
 *	FUSEE_SAMPLER_PROGRAM(forks, "tp_btf/sched_process_fork", forked);
 *
 * The args are those of the tracepoint, by their place. A struct of the kernel is declared with the
 * fields that are read, and FUSEE_KERNEL_TYPE behind it: the offsets are those of the running
 * kernel. `task` is always a struct task_struct that the tracepoint has given. The program may have
 * maps of its own, whose names begin with the sampler's; neither writable globals nor loops without
 * a bound. Several samplers may be used at once: each has its own period, its own memory of a
 * thread and its own samples, also of one thread at one event.
 *
 * What runs at each event of the machine is what a sampler costs. Each call of a function of the
 * core takes a few ns; what is in struct fusee_scope, none: so the period and
 * fusee_sampler_selected() come first, and only then anything else.
 */
#ifndef FUSEE_SAMPLER_BPF_H
#define FUSEE_SAMPLER_BPF_H

#include <fusee/unwinder.bpf.h>

/* 1: the running kernel has this field: FUSEE_KERNEL_HAS(task->__state) */
#ifdef __bpf__
#define FUSEE_KERNEL_TYPE __attribute__((preserve_access_index))
#define FUSEE_KERNEL_HAS(field) __builtin_preserve_field_info(field, 2)
#else
#define FUSEE_KERNEL_TYPE
#define FUSEE_KERNEL_HAS(field) 1
#define SEC(name)
#endif

/* What a sampler keeps of a thread: zeros but for what it has written. FROZEN */
struct fusee_thread_memory {
	__u64 word[4];
};

/* ---- what is sampled now ---- */

#define FUSEE_SAMPLER_ENTRIES 16384u

/* What a program asks at each event, to be read in place: the core changes it at any time. A later
 * version may add fields behind these. */
struct fusee_scope {
	__u64 period; /* the value that one sample represents at least, in the sampler's unit, less
		       * than 2^32; 0: no samples are taken now */
	__u32 all;    /* 1: any process may be selected */
	__u32 pad;
	/* By pid % FUSEE_SAMPLER_ENTRIES: how many processes have a setting of their own. */
	__u32 entries[FUSEE_SAMPLER_ENTRIES];
};

#ifdef __bpf__
struct task_struct___of_scope {
	int tgid;
} FUSEE_KERNEL_TYPE;
#endif

/* 0: the thread's process is not selected. 1: it may be. Takes two loads. */
FUSEE_FN int fusee_sampler_selected(const struct fusee_scope *scope, void *task)
{
#ifdef __bpf__
	const struct task_struct___of_scope *of = task;

	return scope->all || scope->entries[(__u32)of->tgid % FUSEE_SAMPLER_ENTRIES];
#else
	(void)task; /* a test's threads are all of the same process */
	return scope->all;
#endif
}

/* ---- functions of the core ---- */

#define FUSEE_OF_CORE __attribute__((noinline, visibility("hidden")))

/* Since when samples are taken: CLOCK_MONOTONIC ns. */
FUSEE_OF_CORE __u64 fusee_sampler_began(void);
/* Since when each thread of this process had room when fusee_sampler_remember() was called, so that
 * a thread of which nothing is kept had no event since; 0: that is not known. */
FUSEE_OF_CORE __u64 fusee_sampler_complete_since(void *task);
/* CLOCK_MONOTONIC ns. */
FUSEE_OF_CORE __u64 fusee_sampler_time(void);

#ifdef __bpf__
/* Those below, with the number of the sampler that calls. */
FUSEE_OF_CORE const struct fusee_scope *fusee_sampler_scope_of(__u32 sampler);
FUSEE_OF_CORE struct fusee_thread_memory *fusee_sampler_memory_of(__u32 sampler, void *task);
FUSEE_OF_CORE int fusee_sampler_remember_of(__u32 sampler, void *task,
					    const struct fusee_thread_memory *first);
FUSEE_OF_CORE int fusee_sampler_forget_of(__u32 sampler, void *task);
FUSEE_OF_CORE __u64 fusee_sampler_chance_of(__u32 sampler, __u64 value);
FUSEE_OF_CORE int fusee_sampler_take_of(__u32 sampler, void *task, __u64 weight, __u32 word0,
					__u32 word1);
#else
#define FUSEE_SAMPLER_FN FUSEE_OF_CORE
#endif
#if defined(__bpf__) && !defined(FUSEE_CORE)
#define FUSEE_SAMPLER_FN FUSEE_FN
#endif

#ifdef FUSEE_SAMPLER_FN
/* Never NULL, which the verifier cannot know. */
FUSEE_SAMPLER_FN const struct fusee_scope *fusee_sampler_scope(void);
/* What is kept of the thread; NULL: nothing yet. */
FUSEE_SAMPLER_FN struct fusee_thread_memory *fusee_sampler_memory(void *task);
/* Begins to keep something of the thread, if its process is selected. 0, or -1: it is not, or there
 * is no room, which is counted. */
FUSEE_SAMPLER_FN int fusee_sampler_remember(void *task, const struct fusee_thread_memory *first);
/* Nothing more is kept of the thread: it ends. */
FUSEE_SAMPLER_FN int fusee_sampler_forget(void *task);
/* Counts an event of this value. Returns the weight of its sample: the value, if that is a period
 * or more, else a period with the probability value / period, so that the expected weight is the
 * value; 0: it is no sample. */
FUSEE_SAMPLER_FN __u64 fusee_sampler_chance(__u64 value);
/* The stack of the thread is a sample, with two words for ops->parts(). The thread must run on this
 * CPU, or come to run on it. 0, or -1: its process is not selected, or there is no room, which is
 * counted. */
FUSEE_SAMPLER_FN int fusee_sampler_take(void *task, __u64 weight, __u32 word0, __u32 word1);
#endif

/* Makes the static function `void program(__u64 *args)` a program at "tp_btf/TRACEPOINT". */
#define FUSEE_SAMPLER_PROGRAM(name, tracepoint, program)              \
	SEC(tracepoint) int fusee_sampler_program_##name(__u64 *args) \
	{                                                             \
		program(args);                                        \
		return 0;                                             \
	}                                                             \
	struct fusee_unused_##name /* for the semicolon */

#if defined(__bpf__) && !defined(FUSEE_CORE)
#include <fusee/sampler_kernel.h>
#endif

#endif

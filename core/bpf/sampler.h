/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampler's BPF programs: linked with the native unwinders' steps, loaded, and handed what they
 * need to know of processes. Attached to the snapshot sampler's events they take from each tick
 * whose stack can be walked in the kernel; what they leave is written by the event as before.
 *
 * Needs CAP_BPF and CAP_PERFMON. For one thread.
 */
#ifndef BPF_SAMPLER_H
#define BPF_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "../../bpf/maps.h"
#include "plugin/plugin.h"
#include "process/process.h"
#include "unwind/claims.h"

struct bpf_sampler;

struct bpf_sampler_options {
	uint64_t table_bytes; /* cap of all unwind tables in the kernel, allocated at once; 0: 16
				 MiB */
	uint32_t chunks;      /* processes of up to 64 executable mappings each; 0: 512 */
};

/* Who walks stacks. */
enum sampler_choice {
	SAMPLER_AUTO,     /* the kernel where it can, else user space */
	SAMPLER_BPF,      /* the kernel, or an error */
	SAMPLER_SNAPSHOT, /* user space */
};

extern const char *const sampler_choices[]; /* their names, by number; ends with NULL */

/* 0; or -errno, with one malloc'ed sentence that says what stands in the way. */
int bpf_sampler_open(struct bpf_sampler **ret, const struct plugin_set *,
		     const struct bpf_sampler_options *, char **why);
/* Likewise, as chosen: 0 and *ret NULL where user space is to walk, because it was chosen or, with
 * *why, because nothing else works. */
int bpf_sampler_choose(struct bpf_sampler **ret, enum sampler_choice, const struct plugin_set *,
		       const struct bpf_sampler_options *, char **why);
void bpf_sampler_close(struct bpf_sampler *); /* NULL is fine; after its events are closed */
/* The program runs at each tick of this event, and of those that inherit it. Before it is enabled.
 */
int bpf_sampler_attach(struct bpf_sampler *, int event);
/* So much of a stack that is left to user space is copied. */
void bpf_sampler_copy(struct bpf_sampler *, uint32_t bytes);
/* The event that carries records into this CPU's ring. */
int bpf_sampler_output(struct bpf_sampler *, int cpu, int event);
/* The rings were read: until the next time at most so much of stacks is copied on each CPU; ticks
 * beyond come without one. Before the first time there is no limit. */
void bpf_sampler_read(struct bpf_sampler *, uint64_t bytes);
/* false: we are in another pid namespace than the programs, which can't be told of processes. */
bool bpf_sampler_is_here(const struct bpf_sampler *);
/* From now on each CPU has an event of its own with this period, idle time included, and what was
 * before is over (they were off for a while, or ticked otherwise): their ticks are counted by CPU.
 */
void bpf_sampler_base(struct bpf_sampler *, uint64_t period_ns);
/* Ticks of those that were due on all CPUs and that the program did not see: the timer came late,
 * or the kernel did not run it. */
uint64_t bpf_sampler_unseen(struct bpf_sampler *);
/*
 * Whose ticks are taken, before any cost: of this process, and of those that nothing is decided
 * about, those of the events with this period; all others are dropped. In the beginning all ticks
 * of all are taken. A child has its parent's decision from the fork on; exec keeps it, but for a
 * refusal, which ends there. weight_ns above the period: of these ticks so many are taken, by
 * chance, that each stands for that much. 0 or -errno.
 */
#define BPF_SAMPLER_NONE UINT64_MAX /* no event's */
int bpf_sampler_decide(struct bpf_sampler *, pid_t pid, uint64_t period_ns, uint64_t weight_ns);
void bpf_sampler_decide_unknown(struct bpf_sampler *, uint64_t period_ns);
/* Nothing is decided about this process any more. */
void bpf_sampler_undecide(struct bpf_sampler *, pid_t pid);

/* Tells the kernel the process's mappings; those whose files are not ready are left out. Borrowed
 * until it is forgotten. It is walked there once that is confirmed. 0; or -ENOSPC, -errno: it is
 * left to user space. */
int bpf_sampler_put(struct bpf_sampler *, struct process *, const struct claims *);
/* Programs of language unwinders are loaded beside us when the first process needs them. Has one
 * become ready, or turned out not to load? Then processes that wait (p->sampler.waits) are to be
 * put anew. To be asked now and then; does not wait. */
bool bpf_sampler_loaded(struct bpf_sampler *);
/* Likewise, when all that are being loaded are. */
bool bpf_sampler_wait(struct bpf_sampler *);
/* All records of mappings until that time (CLOCK_MONOTONIC ns; p->sampler.since or later) have been
 * seen, and changed nothing. */
void bpf_sampler_confirm(struct bpf_sampler *, struct process *, uint64_t as_of);
/* Processes that are not walked in the kernel though they were put: since `when`, that is when they
 * were put (p->sampler.since) and are to be confirmed, or when memory was taken where they had
 * code. */
void bpf_sampler_changed(struct bpf_sampler *,
			 void (*each)(void *arg, struct process *, uint64_t when), void *arg);
/* Has bpf_sampler_changed() or bpf_sampler_loaded() something to say, now or soon, or do the rings
 * hold stacks that the kernel would have walked if it knew more? A few reads of memory. */
bool bpf_sampler_has_news(const struct bpf_sampler *);
void bpf_sampler_forget(struct bpf_sampler *, struct process *);

/* The texts of enum tick_result. */
extern const char *const tick_result_texts[TICK_RESULT_COUNT];

struct bpf_sampler_stats {
	uint64_t ticks[TICK_RESULT_COUNT];   /* since the start, by enum tick_result */
	uint64_t table_bytes, table_cap;     /* in use */
	uint32_t chunks, chunks_cap;         /* likewise */
	uint32_t instructions, machine_code; /* of the program: verified; bytes */
};

void bpf_sampler_stats(struct bpf_sampler *, struct bpf_sampler_stats *);
#endif

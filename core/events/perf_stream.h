/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All perf events and rings of a recording or of the agent: cpu-clock events with a fixed period,
 * whose samples carry the user registers, a copy of the user stack and the kernel's callchain. That
 * is the snapshot sampler; it needs no right but perf_event_open(2). With a BPF sampler a program
 * runs at each tick: it sends the stack that it unwound into the same ring, and only a stack that
 * the program can't unwind comes as a copy.
 *
 * Records of all CPUs are handed over in the order of their time. They are read where the kernel
 * wrote them: pointers in a sample are valid until its handler returns. For one thread.
 */
#ifndef EVENTS_PERF_STREAM_H
#define EVENTS_PERF_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "loss/loss.h"
#include "plugin/plugin.h"
#include "process/procfs.h"
#include "unwind/sample.h"

struct bpf_sampler;
struct event_kind;
struct record_stack; /* bpf/records.h */
struct record_missed;
struct record_emission;
struct record_labels;

/* The periods of samplers, by their number. */
struct wait_periods {
	uint64_t at[PLUGIN_MAX_SAMPLERS];
	uint32_t n;
};

struct perf_stream_options {
	/* Targets: some processes with all their threads, and what these start; or `all` processes;
	 * or, `dynamic`, the targets that perf_stream_add() and perf_stream_add_cpus() add. */
	const pid_t *pids; /* borrowed for perf_stream_open() */
	uint32_t npids;
	bool all, dynamic;
	/* The processes are sampled by events of the CPUs, and bpf/rates.h selects the processes
	 * that they start. A child then has no period of its own, so that short children are
	 * sampled by chance. */
	bool cpus;
	bool waits;          /* of these CPUs or of `all`: only what samplers choose, with bpf */
	uint32_t hit_period; /* likewise: hits of probes, whose value it is; 0: none is */
	bool hits_beside;    /* .. beside what else is sampled */
	/* Of samplers of plugins: with `waits`, or beside what else is sampled. */
	struct wait_periods wait_periods;
	bool on_exec;                  /* sampling begins when pids[0] execs */
	const struct event_kind *kind; /* what is sampled, borrowed; NULL: CPU time */
	/* Of CPU time, or a number of events of the kind. Dynamic: the shortest period, for the
	 * size of the rings. */
	uint64_t period_ns;
	uint64_t ring_bytes;     /* of all rings, unless each has its least size; 0: a default */
	uint32_t stack_bytes;    /* of a stack copy; a multiple of 8, at most SAMPLE_MAX_STACK */
	bool kernel;             /* kernel stacks, if allowed */
	struct bpf_sampler *bpf; /* borrowed; NULL: the snapshot sampler */
};

/* Times are CLOCK_MONOTONIC ns. */
struct perf_stream_handlers {
	void *arg;
	void (*sample)(void *arg, const struct sample *);
	/* Records of the BPF sampler; valid until the handler returns. A stack that was unwound in
	 * the kernel: */
	void (*stack)(void *arg, uint64_t time, uint32_t cpu, const struct record_stack *);
	/* Likewise, from a caller on: of the copy that follows. */
	void (*continuation)(void *arg, uint64_t time, const struct record_stack *);
	/* A tick without a stack. */
	void (*missed)(void *arg, uint64_t time, uint32_t cpu, const struct record_missed *);
	/* What a language unwinder's step emitted; precedes the stack that it is about. */
	void (*emission)(void *arg, uint64_t time, const struct record_emission *);
	/* What a labeler says of the sample that is handed over next. May be NULL. */
	void (*labels)(void *arg, const struct record_labels *);
	/* Sideband. An executable mapping; m->name is valid until the handler returns. */
	void (*mapped)(void *arg, pid_t pid, uint64_t time, const struct procfs_mapping *m);
	void (*comm)(void *arg, pid_t pid, pid_t tid, uint64_t time, const char *comm, bool exec);
	/* tid == pid: a process, otherwise a thread of it. */
	void (*forked)(void *arg, pid_t pid, pid_t parent, pid_t tid, uint64_t time);
	void (*exited)(void *arg, pid_t pid, pid_t tid, uint64_t time);
	/* Records were lost, sideband perhaps among them, so that /proc must be read again. 0: an
	 * unknown number, because a CPU was not followed for a while. */
	void (*lost)(void *arg, uint64_t records);
};

/* What became of the ticks. ring_full, skipped and unfinished never fall from one read to the next.
 */
/* Hits of probes without a sample. */
struct lost_hits {
	uint64_t unwalked; /* while the CPU read the stack of another */
	uint64_t unsent;   /* beside ticks: the ring had no room */
	uint64_t hooks;    /* of hooks, for either reason */
};

struct perf_stream_counts {
	uint64_t count_ns;   /* CPU time that the targets used; 0 of all processes */
	uint64_t samples;    /* handed over */
	uint64_t walked;     /* of them: unwound in the kernel */
	uint64_t ring_full;  /* samples for which a ring had no room */
	uint64_t skipped;    /* ticks without a sample: the timer fired late, or the thread was in
				the kernel, which is not sampled */
	uint64_t unfinished; /* periods of CPU time without a tick: of threads that ended, or
				slept, before their first */
	uint64_t invalid;    /* records of the BPF sampler of an unknown kind or a wrong size */
	/* waits that were over before their stack was read, and what they represent, by the number
	 * of the sampler */
	uint64_t late[LOSS_SAMPLERS], late_weight[LOSS_SAMPLERS];
	struct lost_hits hits;
	uint64_t throttled; /* how often the kernel stopped sampling for a while */
	bool gaps;          /* skipped is counted from sample to sample, not from the total */
};

struct perf_stream;

/* Opens all events, disabled (on_exec: until the exec). 0; -ESRCH: no target is alive; or -errno of
 * what the kernel refused. */
int perf_stream_open(struct perf_stream **ret, const struct perf_stream_options *);
void perf_stream_close(struct perf_stream *); /* NULL is fine */
/* Kernel stacks are sampled, as far as events were opened yet. */
bool perf_stream_kernel(const struct perf_stream *);
uint32_t perf_stream_events(const struct perf_stream *); /* that are open */
/* Enables or disables all events, also those that are added later. 0 or -errno. */
int perf_stream_enable(struct perf_stream *);
/* Sets the periods of samplers from now on, before the process that is held execs; 0: those do not
 * begin yet. */
void perf_stream_count_from_exec(struct perf_stream *, const struct wait_periods *);
/* The process that was held goes on: its waits until now were for fusee. */
void perf_stream_command_runs(struct perf_stream *);
int perf_stream_disable(struct perf_stream *);

/* Dynamic: opens events for all threads of a process and for what these start. Their samples carry
 * *group, which is never 0 and never used again; those that a BPF sampler has chosen carry 0. 0;
 * -ESRCH: the process has ended; -errno. */
int perf_stream_add(struct perf_stream *, pid_t pid, uint64_t period_ns, uint32_t *group);
/* Dynamic: opens an event for each CPU. Their sideband is of all processes; events of processes
 * that are added later have none. 0; -ENOTSUP: there is no BPF sampler, which selects whose ticks
 * are sampled; -errno. */
int perf_stream_add_cpus(struct perf_stream *, uint64_t period_ns, uint32_t *group);
/* Likewise, beside those: more events, without sideband. No other events have their period. 0 or
 * -errno. */
int perf_stream_add_cpus_beside(struct perf_stream *, uint64_t period_ns, uint32_t *group);
/* Closes a group's events, also those that processes inherited. Samples that are in a ring are
 * still handed over. */
void perf_stream_remove(struct perf_stream *, uint32_t group);

/* With options.cpus: opens events of the process's threads, if there are few. They then have a
 * sample for each of their periods, until they exec or exit; with many the CPUs' events sample them
 * by chance. */
void perf_stream_add_own(struct perf_stream *, pid_t pid);

int perf_stream_fd(const struct perf_stream *); /* epoll: readable when a ring fills */
/* Hands over the records that are due. final: all, after perf_stream_disable(). */
void perf_stream_drain(struct perf_stream *, const struct perf_stream_handlers *, bool final);
/* Likewise, not final, but only records older than until (CLOCK_MONOTONIC ns). */
void perf_stream_drain_until(struct perf_stream *, const struct perf_stream_handlers *,
			     uint64_t until);
/* Likewise, also young records, which an older record of another CPU may follow. */
void perf_stream_drain_now(struct perf_stream *, const struct perf_stream_handlers *,
			   uint64_t until);
/* After a drain because the BPF programs met a process that they do not know the rings are read
 * some more times. Whether they are to be; that this is not necessary, until the next such drain;
 * and, after each drain, that perf_stream_fd() is to report it. */
bool perf_stream_looks_again(const struct perf_stream *);
void perf_stream_end_looks(struct perf_stream *);
void perf_stream_look_again(struct perf_stream *);
/* Whether the last drain ended after 20 ms with more records due: the caller is to do its other
 * work, and then to drain again at once. */
bool perf_stream_is_behind(const struct perf_stream *);
/* All records older than this (CLOCK_MONOTONIC ns) have been handed over. */
uint64_t perf_stream_horizon(const struct perf_stream *);
void perf_stream_counts(struct perf_stream *, struct perf_stream_counts *);
#endif

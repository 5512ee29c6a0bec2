/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples processes without BPF: each thread that uses CPU time is stopped by ptrace(2), about once
 * a period, for as long as unwinding its stack over its memory takes. So the frames of languages
 * are there, which no stack copy has. A sample stands for the CPU time that the thread used since
 * the sample before. Threads are stopped for 1 % at most of the time in which they run or wait for
 * a CPU: where that does not allow the rate, there are fewer samples, with more weight each.
 * Nothing is sampled in the kernel: the time there counts for the caller.
 *
 * A thread of its own is the tracer, so that the kernel lets all targets go when it ends; the
 * caller waits while it works. SIGCHLD is blocked in all threads, and the tracer may take it: after
 * each call the caller looks for the children that it waits for. For one thread.
 */
#ifndef STOP_SAMPLER_H
#define STOP_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "pipeline/pipeline.h"
#include "worker/worker.h"

struct stop_sampler;

struct stop_options {
	struct pipeline *pipeline; /* borrowed, as is the next */
	struct worker *worker;
	uint64_t period_ns; /* CPU time between two samples of a thread */
	/* Perf events sample the processes too, and say what they map and start: only processes of
	 * languages are stopped, which stop_sampler_has() tells. */
	bool beside_events;
};

struct stop_counts {
	uint64_t cpu_ns;        /* of the processes, while they are sampled by stops */
	uint64_t waited_ns;     /* they waited for a CPU meanwhile */
	uint64_t unfinished_ns; /* of it: of threads that ended before they were stopped */
	uint64_t traced_ns;     /* of threads that another process traces */
	uint64_t refused_ns;    /* of threads that may not be stopped */
	uint64_t samples, stops;
	uint64_t stopped_ns, longest_ns; /* all stops; the longest */
	uint64_t held_back;              /* samples that the limit of 1 % delayed */
	uint64_t late;                   /* threads that stopped only later */
	uint32_t processes;              /* that were sampled by stops */
	pid_t refused, refused_tracer;   /* the first such process, and its tracer; 0: none */
};

/* 0; -ENOMEM; -EAGAIN: no thread could be started. */
int stop_sampler_new(struct stop_sampler **ret, const struct stop_options *);
/* Lets all threads go on. Before the pipeline is freed; NULL is fine. */
void stop_sampler_free(struct stop_sampler *);
/* Adds a process; what it starts is followed. 0; -ESRCH: it has ended; -ENOMEM. */
int stop_sampler_add(struct stop_sampler *, pid_t pid);
/* A record of a fork. */
void stop_sampler_forked(struct stop_sampler *, pid_t parent, pid_t child);
/* Is the process sampled by stops at that time (CLOCK_MONOTONIC ns)? */
bool stop_sampler_has(const struct stop_sampler *, pid_t pid, uint64_t time);
/* Sampling begins, ends. 0 or -errno. */
int stop_sampler_enable(struct stop_sampler *);
void stop_sampler_disable(struct stop_sampler *);
/* Readable when stop_sampler_tick() is due. */
int stop_sampler_fd(const struct stop_sampler *);
void stop_sampler_tick(struct stop_sampler *);
/* A child changed its state (SIGCHLD), perhaps a thread that stopped late. */
void stop_sampler_collect(struct stop_sampler *);
/* No figure falls from one call to the next. */
void stop_sampler_counts(const struct stop_sampler *, struct stop_counts *);
#endif

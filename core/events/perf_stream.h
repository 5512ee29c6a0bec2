/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The snapshot sampler: perf's cpu-clock with a fixed period, and with each sample the user
 * registers, a copy of the user stack and the kernel's callchain. Needs no BPF, and no right but
 * perf_event_open. With the BPF sampler a sample is only written where that one cannot walk the
 * stack to its end in the kernel; else its record is, into the same ring.
 *
 * Records of all CPUs are handed over in the order of their time. They are read where the kernel
 * wrote them: pointers in a sample live until its handler returns. For one thread.
 */
#ifndef EVENTS_PERF_STREAM_H
#define EVENTS_PERF_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "../../bpf/records.h"
#include "process/procfs.h"
#include "unwind/sample.h"

struct bpf_sampler;

struct perf_stream_options {
	const pid_t *pids; /* targets: all their threads, and what these start */
	uint32_t npids;
	bool all;     /* the whole machine instead */
	bool dynamic; /* neither: targets come and go by perf_stream_add() */
	bool on_exec; /* sampling begins when pids[0] execs */
	bool told;    /* of mappings and processes by other events than these */
	uint64_t period_ns;
	uint32_t stack_bytes;    /* a multiple of 8, at most SAMPLE_MAX_STACK */
	bool kernel;             /* kernel stacks, where allowed */
	struct bpf_sampler *bpf; /* walks stacks in the kernel, what it can; borrowed. NULL: none */
};

struct perf_stream_handlers {
	void *arg;
	void (*sample)(void *arg, const struct sample *);
	/* Records of the BPF sampler; valid until the handler returns. A stack that was unwound in
	 * the kernel: */
	void (*stack)(void *arg, uint64_t time, uint32_t cpu, const struct record_stack *);
	/* A tick without a stack. */
	void (*missed)(void *arg, uint64_t time, uint32_t cpu, const struct record_missed *);
	/* What a language unwinder's step emitted; precedes the stack that it is about. */
	void (*emission)(void *arg, uint64_t time, const struct record_emission *);
	/* An executable mapping; m->name lives until the handler returns. */
	void (*mapped)(void *arg, pid_t pid, uint64_t time, const struct procfs_mapping *m);
	void (*comm)(void *arg, pid_t pid, pid_t tid, uint64_t time, const char *comm, bool exec);
	void (*forked)(void *arg, pid_t pid, pid_t parent, pid_t tid,
		       uint64_t time); /* tid == pid: a process */
	void (*exited)(void *arg, pid_t pid, pid_t tid, uint64_t time);
	void (*lost)(void *arg, uint64_t records); /* sideband may be among them, or, 0, was not
						      told: look at /proc again */
};

/* The events' own account; ticks are periods of CPU time. */
struct perf_stream_counts {
	uint64_t count_ns;  /* CPU time that the events saw, but for those of CPUs, where it counts
			       idle time too */
	uint64_t samples;   /* delivered */
	uint64_t walked;    /* of them: in the kernel */
	uint64_t ring_full; /* samples that found no room */
	uint64_t skipped;   /* ticks without a sample: the timer came late, or in the kernel where
			       that is excluded */
	uint64_t invalid;   /* records of the BPF sampler of an unknown kind or a wrong size */
	uint64_t throttled; /* times that the kernel stopped sampling for a while */
	bool gaps; /* skipped was seen from sample to sample, not reckoned from the total */
};

struct perf_stream;

/* 0, or -errno of what stood in the way; nothing runs yet (with on_exec: until the exec). */
int perf_stream_open(struct perf_stream **ret, const struct perf_stream_options *);
/* Kernel stacks are there, as far as events were opened yet. */
bool perf_stream_kernel(const struct perf_stream *);
uint32_t perf_stream_events(const struct perf_stream *);
int perf_stream_enable(struct perf_stream *); /* what is added later is enabled too */
int perf_stream_disable(struct perf_stream *);
/*
 * Dynamic ones: events for all threads of a process, and for what these start; samples carry
 * *group, never 0 and never used again. 0, -ESRCH: it is gone, or -errno.
 */
int perf_stream_add(struct perf_stream *, pid_t pid, uint64_t period_ns, uint32_t *group);
/* Dynamic ones: an event for each CPU, as with `all`; what is added later needs to tell of no
 * mappings then. Needs `bpf`, which decides whose ticks are taken. 0 or -errno. */
int perf_stream_add_cpus(struct perf_stream *, uint64_t period_ns, uint32_t *group);
/* Its events end, with those of all processes that inherited them. Samples that were taken before
 * may still come. */
void perf_stream_remove(struct perf_stream *, uint32_t group);
int perf_stream_fd(const struct perf_stream *); /* epoll fd: readable when a ring fills */
/* Hands over what is due. final: everything, after perf_stream_disable(). */
void perf_stream_drain(struct perf_stream *, const struct perf_stream_handlers *, bool final);
/* Likewise, not final, but only what is older than that (CLOCK_MONOTONIC ns). */
void perf_stream_drain_until(struct perf_stream *, const struct perf_stream_handlers *,
			     uint64_t until);
/* Records older than this (CLOCK_MONOTONIC ns) have been handed over. */
uint64_t perf_stream_horizon(const struct perf_stream *);
void perf_stream_counts(struct perf_stream *, struct perf_stream_counts *);
void perf_stream_close(struct perf_stream *); /* NULL is fine */
#endif

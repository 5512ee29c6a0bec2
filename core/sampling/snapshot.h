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
#ifndef SAMPLING_SNAPSHOT_H
#define SAMPLING_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "process/procfs.h"

#define SNAPSHOT_MAX_STACK 65528u /* perf's maximum: 64 KiB - 8 */

struct bpf_sampler;
struct sampler_record; /* bpf/sampler.h */

struct snapshot_options {
	const pid_t *pids; /* targets: all their threads, and what these start */
	uint32_t npids;
	bool all;     /* the whole machine instead */
	bool dynamic; /* neither: targets come and go by snapshot_add() */
	bool on_exec; /* sampling begins when pids[0] execs */
	bool told;    /* of mappings and processes by other events than these */
	uint64_t period_ns;
	uint32_t stack_bytes;    /* a multiple of 8, at most SNAPSHOT_MAX_STACK */
	bool kernel;             /* kernel stacks, where allowed */
	struct bpf_sampler *bpf; /* walks stacks in the kernel, what it can; borrowed. NULL: none */
};

struct snapshot_sample {
	pid_t pid, tid;
	uint32_t cpu;
	uint32_t group;         /* whose event it was: of snapshot_add(), else 0 */
	uint64_t time;          /* CLOCK_MONOTONIC ns */
	uint64_t period;        /* ns of CPU time it stands for */
	const uint64_t *kernel; /* kernel addresses, innermost first */
	uint32_t nkernel;
	uint32_t abi;      /* 0: no user registers (a kernel thread), 1: 32 bit, 2: 64 bit */
	uint64_t regs[17]; /* by DWARF number; 16: rip */
	const void *stack; /* what was copied from regs[7] = rsp upwards */
	uint32_t stack_len;
	uint64_t holes; /* bit i: page i of it, from the one on that rsp is in, could not be read */
	bool stack_full; /* the copy has the size asked for: the stack may go on above */
	uint32_t cut;    /* who cut its walk in the kernel, as in struct sampler_record; 0: no
			    language unwinder */
};

/* A whole stack that was walked in the kernel, emissions, or a tick whose stack nobody has
 * (`left`): their record says. */
struct snapshot_walked {
	uint64_t time, period; /* as above */
	uint32_t cpu;
	const struct sampler_record *record;
};

struct snapshot_handlers {
	void *arg;
	void (*sample)(void *arg, const struct snapshot_sample *);
	void (*walked)(void *arg, const struct snapshot_walked *);
	/* What a language unwinder's step emitted, before the stack whose frames it names. */
	void (*emitted)(void *arg, const struct snapshot_walked *);
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
struct snapshot_counts {
	uint64_t count_ns;  /* CPU time that the events saw, but for those of CPUs, where it counts
			       idle time too */
	uint64_t samples;   /* delivered */
	uint64_t walked;    /* of them: in the kernel */
	uint64_t ring_full; /* samples that found no room */
	uint64_t skipped;   /* ticks without a sample: the timer came late, or in the kernel where
			       that is excluded */
	uint64_t throttled; /* times that the kernel stopped sampling for a while */
	bool gaps; /* skipped was seen from sample to sample, not reckoned from the total */
};

struct snapshot;

/* 0, or -errno of what stood in the way; nothing runs yet (with on_exec: until the exec). */
int snapshot_open(struct snapshot **ret, const struct snapshot_options *);
/* Kernel stacks are there, as far as events were opened yet. */
bool snapshot_kernel(const struct snapshot *);
uint32_t snapshot_events(const struct snapshot *);
int snapshot_enable(struct snapshot *); /* what is added later is enabled too */
int snapshot_disable(struct snapshot *);
/*
 * Dynamic ones: events for all threads of a process, and for what these start; samples carry
 * *group, never 0 and never used again. 0, -ESRCH: it is gone, or -errno.
 */
int snapshot_add(struct snapshot *, pid_t pid, uint64_t period_ns, uint32_t *group);
/* Dynamic ones: an event for each CPU, as with `all`; what is added later needs to tell of no
 * mappings then. Needs `bpf`, which decides whose ticks are taken. 0 or -errno. */
int snapshot_add_cpus(struct snapshot *, uint64_t period_ns, uint32_t *group);
/* Its events end, with those of all processes that inherited them. Samples that were taken before
 * may still come. */
void snapshot_remove(struct snapshot *, uint32_t group);
int snapshot_fd(const struct snapshot *); /* epoll fd: readable when a ring fills */
/* Hands over what is due. final: everything, after snapshot_disable(). */
void snapshot_drain(struct snapshot *, const struct snapshot_handlers *, bool final);
/* Likewise, not final, but only what is older than that (CLOCK_MONOTONIC ns). */
void snapshot_drain_until(struct snapshot *, const struct snapshot_handlers *, uint64_t until);
/* Records older than this (CLOCK_MONOTONIC ns) have been handed over. */
uint64_t snapshot_horizon(const struct snapshot *);
void snapshot_counts(struct snapshot *, struct snapshot_counts *);
void snapshot_close(struct snapshot *); /* NULL is fine */
#endif

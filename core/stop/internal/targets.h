/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that are sampled by stops, with their threads: followed by reading /proc. For one
 * thread. */
#ifndef STOP_TARGETS_H
#define STOP_TARGETS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/hashmap.h"
#include "stop/internal/thread_clock.h"
#include "stop/mapped_code.h"

struct stop_thread {
	struct thread_clock clock;
	uint64_t cpu_ns;     /* of CPU time, read last */
	uint64_t sampled_ns; /* of them, those that samples and losses stand for */
	uint64_t due_ns;     /* cpu_ns at which the next sample is due, so that the rate is kept */
	uint64_t wait_ns;    /* for which it waited for a CPU */
	uint64_t runs;       /* how often it got a CPU */
	uint32_t waits;      /* stops in a row in which it had waited for a CPU */
	int64_t stop_ns;     /* how long its stops took lately, each */
	uint64_t rest_ns;    /* cpu_ns + wait_ns until which it is not stopped again */
	uint64_t retry_ns;   /* it can't be stopped, and is tried again then; CLOCK_MONOTONIC */
	uint32_t tries;      /* stops in a row without a stack */
	bool requested;      /* it was requested to stop, and has not yet */
	bool due;            /* a sample of it is */
	bool traced;         /* by another process, when it could not be stopped */
	bool seen;           /* in the current reading */
	char comm[16];
};

struct stop_process {
	pid_t pid;
	int pidfd;         /* -1: none */
	uint64_t clock_ns; /* of process_clock_read(), at the last reading of its threads */
	uint64_t taken_ns; /* sampled by stops since then, CLOCK_MONOTONIC; 0: not (yet) */
	pid_t parent;      /* that started it while it was a target; 0: none did */
	bool code_due;     /* what it has mapped is to be read */
	uint64_t code_ns;  /* it was read then; CLOCK_MONOTONIC */
	bool offered;      /* unwinders have seen what it has mapped */
	bool alone;        /* it has one thread, and had at the last reading */
	uint64_t ended_ns; /* then: what its clock has beside that thread's */
	struct mapped_code code;
	struct stop_thread *threads;
	uint32_t n, cap;
	struct stop_process *next;
};

/* CPU time in ns. */
struct stop_times {
	uint64_t cpu;        /* that the processes used since they are sampled by stops */
	uint64_t waited;     /* no CPU time: they waited for a CPU meanwhile */
	uint64_t unfinished; /* of it: of threads that ended before they were stopped */
};

struct stop_targets {
	struct stop_process *first;
	struct hashmap pids;   /* the same, by pid */
	struct hashmap others; /* processes that are none; values: the mark of the last reading */
	char marks[2];         /* their addresses are the marks, in turn */
	uint32_t kept;         /* descriptors of clocks */
	struct stop_times times;
	uint64_t children_ns; /* when children are looked for next; CLOCK_MONOTONIC */
	uint64_t reading;     /* number of the current one */
};

void stop_targets_fini(struct stop_targets *);
/* Adds a process, if it is not there. parent: the target that started it; 0: none. 0; -ESRCH;
 * -ENOMEM. */
int stop_targets_add(struct stop_targets *, pid_t pid, pid_t parent);
struct stop_process *stop_targets_find(const struct stop_targets *, pid_t pid);
/* It is sampled from now on: taken_ns is about to be set. all: what its threads used before counts
 * too. */
void stop_targets_take(struct stop_targets *, struct stop_process *, bool all);
/* Has the process used CPU since its threads were read? -ESRCH: it has ended. */
int stop_targets_ran(struct stop_process *);
/* Reads its threads, and their CPU time. */
void stop_targets_read(struct stop_targets *, struct stop_process *);
/* Sampling ends: what threads used since their last samples is unfinished. */
void stop_targets_settle(struct stop_targets *);
/* It has ended. */
void stop_targets_remove(struct stop_targets *, struct stop_process *);
/* Adds what the processes have started, as far as /proc tells, now and then. added(): of each. */
void stop_targets_find_children(struct stop_targets *, uint64_t now,
				void (*added)(void *arg, pid_t parent, pid_t child), void *arg);
/* The thread is stopped, and its CPU time was read, which is of now. */
void stop_targets_note_stop(struct stop_process *, const struct stop_thread *);
/* Reads the thread's CPU time. 0; -ESRCH. */
int stop_targets_read_thread(struct stop_targets *, struct stop_process *, struct stop_thread *);
struct stop_thread *stop_targets_thread(struct stop_process *, pid_t tid);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes the stacks of all threads of a process now, of waiting threads too. Where the kernel
 * permits it, a thread that does not run is not stopped: its registers are those that the kernel
 * saved, and dump checks that it did not run meanwhile. Other threads are stopped by ptrace(2)
 * while their registers and stack memory are read. The profiler has no events. For one thread.
 */
#ifndef DUMP_THREADS_H
#define DUMP_THREADS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "process/thread_state.h"
#include "profiler/profiler.h"

/* Why a thread has no user stack. */
enum dump_miss {
	DUMP_TAKEN, /* it has a stack: in the collector, by its tid */
	DUMP_ENDED,
	DUMP_NO_RIGHT,
	DUMP_TRACED,  /* state.tracer traces it */
	DUMP_NO_STOP, /* it did not stop in time */
	DUMP_KERNEL,  /* a kernel thread has none */
};

struct dumped_thread {
	struct thread_state state;
	enum dump_miss miss;
	uint64_t stopped_ns; /* in all; an upper bound */
	uint32_t stops;      /* 0: not stopped; above 1: data was missing at earlier stops */
};

struct dump {
	struct dumped_thread *threads; /* owned; by tid, but the main thread first */
	uint32_t n;
	size_t cap;
};

#define DUMP_MAX_THREADS 16384u

struct dump_options {
	pid_t pid;
	const pid_t *tids; /* only these threads; ntids 0: all */
	uint32_t ntids;
	bool stop;               /* each thread is stopped, even if that is not necessary */
	_Atomic uint32_t *beats; /* incremented at each step, which takes seconds at most, unless
				    the process keeps its readers waiting */
};

/* Adds the threads of one process, and their stacks to the collector in slot 0. 0; -ESRCH: there is
 * no such process, or it has ended; -EACCES, -EPERM: no right to read it; -EFBIG: more than
 * DUMP_MAX_THREADS; -EAGAIN: code was unmapped meanwhile, so that the stacks may be wrong; -errno.
 */
int dump_process(struct dump *, struct profiler *, const struct dump_options *);
void dump_fini(struct dump *);
#endif

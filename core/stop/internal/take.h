/* SPDX-License-Identifier: Apache-2.0 */
/* Stops of threads, in which their stacks are unwound. For one thread, which is the tracer, but
 * stop_prepare(). */
#ifndef STOP_TAKE_H
#define STOP_TAKE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "process/stopped_thread.h"
#include "stop/internal/targets.h"
#include "stop/sampler.h"
#include "stop/thread_memory.h"

/* A thread that was requested to stop, and had not yet. */
struct stop_request {
	struct stopped_thread stopped;
	pid_t pid;
};

struct stop_taker {
	const struct stop_options *o; /* borrowed, as are the next two */
	struct stop_targets *targets;
	struct stop_counts *counts;
	struct thread_memory *memory;
	struct stop_request *requests;
	uint32_t nrequests, cap;
};

int stop_taker_init(struct stop_taker *); /* its borrowed members are set; 0 or -ENOMEM */
void stop_taker_fini(struct stop_taker *);
/* Reads what the process has mapped, if that is not known. In the thread that the worker belongs
 * to. */
void stop_prepare(struct stop_taker *, struct stop_process *, uint64_t now);
/* Is a sample of the thread due, and is it to be had? What can't be had is accounted for. */
bool stop_is_due(struct stop_taker *, struct stop_process *, struct stop_thread *, uint64_t now);
/* Takes the thread's stack now, or when it stops: stop_collect(). */
void stop_take(struct stop_taker *, struct stop_process *, struct stop_thread *);
/* Takes the stacks of threads that have stopped meanwhile. */
void stop_collect(struct stop_taker *);
#endif

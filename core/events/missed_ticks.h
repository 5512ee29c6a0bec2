/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ticks that were due in the CPU time of threads, and that no sample came for: the timer came late.
 * What each sample says of its thread's time is held against the number of its samples. For one
 * thread.
 */
#ifndef EVENTS_MISSED_TICKS_H
#define EVENTS_MISSED_TICKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hashmap.h"

/* {0} is one of nothing. */
struct missed_ticks {
	struct hashmap each; /* struct thread_ticks *, by what the caller tells threads apart by */
	uint64_t skipped;    /* in all */
	uint64_t unfinished; /* threads and CPUs that may have begun a period without a tick */
	bool broken;         /* there was no memory for one: skipped is too low */
};

/* A sample whose event has counted that much on its thread and CPU, ns. */
void missed_ticks_count(struct missed_ticks *, uint64_t key, uint64_t count_ns, uint64_t period_ns);
/* A sample of a thread that has run for that long, ns as the scheduler counts it. Of a thread that
 * ran before us what is ours begins a period before its first sample. */
void missed_ticks_runtime(struct missed_ticks *, uint64_t key, uint32_t cpu, uint64_t runtime_ns,
			  uint64_t period_ns);
void missed_ticks_begin(struct missed_ticks *,
			uint64_t key); /* a thread began: all its time is ours */
void missed_ticks_end(struct missed_ticks *, uint64_t key);
/* Nothing ticked for a while, but threads went on: from their next ticks on their time is ours. */
void missed_ticks_anew(struct missed_ticks *);
void missed_ticks_fini(struct missed_ticks *);
#endif

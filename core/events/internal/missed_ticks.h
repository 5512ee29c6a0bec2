/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Missed ticks: periods of threads' CPU time for which no sample came because the timer fired late.
 * Each sample carries its thread's CPU time, which is compared with the number of its samples. For
 * one thread.
 */
#ifndef EVENTS_MISSED_TICKS_H
#define EVENTS_MISSED_TICKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hashmap.h"

/* Zeros: no threads. */
struct missed_ticks {
	struct hashmap each; /* struct thread_ticks *, by the caller's key of a thread */
	uint64_t skipped;    /* missed ticks of all threads */
	uint64_t unfinished; /* pairs of thread and CPU that may have begun a period without a tick
			      */
	bool broken;         /* there was no memory for a thread: skipped is too low */
};

/* A sample whose event has counted count_ns on its thread and CPU. key: of event and thread. */
void missed_ticks_count(struct missed_ticks *, uint64_t key, uint64_t count_ns, uint64_t period_ns);
/* A sample of a thread that the scheduler has run for runtime_ns. Of the time before the thread's
 * first sample, and before its first sample with another period, one period counts; all of it if
 * missed_ticks_begin() was called. */
void missed_ticks_runtime(struct missed_ticks *, uint64_t key, uint32_t cpu, uint64_t runtime_ns,
			  uint64_t period_ns);
/* A thread began: all its run time is counted. */
void missed_ticks_begin(struct missed_ticks *, uint64_t key);
/* A thread ended, or has other events from now on; its missed ticks stay counted. */
void missed_ticks_end(struct missed_ticks *, uint64_t key);
/* Events were disabled for a while: threads are counted from their next ticks on. */
void missed_ticks_restart(struct missed_ticks *);
void missed_ticks_fini(struct missed_ticks *);
#endif

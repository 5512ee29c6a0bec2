/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The account of a perf stream: how many ticks were due and have no sample. Each kind of events has
 * its way of counting, which is chosen when they are opened:
 *
 *   targets      sampler   a tick without a sample is
 *   -----------  --------  ------------------------------------------------------------------
 *   processes    snapshot  a gap between the counts of a thread's samples (Linux 6.13), else
 *                          what the events' counts have more than the samples
 *   processes    bpf       a gap between the run times of a thread's samples, within the
 *                          bounds of the events' counts
 *   processes,   bpf       likewise, of threads with events of their own; of all others a gap
 *   cpus                   in the grid of a CPU's ticks that ends while they run
 *   all          snapshot  a gap between the counts of a thread's samples
 *   all          bpf       a gap in the grid of a CPU's ticks
 *   dynamic      snapshot  what the counts of a target's events have more than its samples
 *   dynamic      bpf       a gap between the run times of a thread's samples, and what the counts
 *                          have more than the samples; with CPU events instead of that a gap in
 *                          the grid of a CPU's ticks
 *
 * If events are of threads, CPU time of children without a tick is counted too (`unfinished`): each
 * child begins a period of its own, and the events' counts have its CPU time.
 *
 * A gap of either kind includes samples for which the ring had no room; these are counted apart.
 */
#ifndef EVENTS_STREAM_ACCOUNT_H
#define EVENTS_STREAM_ACCOUNT_H

#include <stdint.h>

#include "events/internal/missed_ticks.h"
#include "events/perf_stream.h"

struct event_group;

struct stream_account {
	/* The way of counting: adds count_ns, ring_full and skipped. */
	void (*count)(struct perf_stream *, struct perf_stream_counts *);
	struct perf_stream_counts records; /* what records say, as they are handed over */
	struct missed_ticks missed;        /* by event and thread, or, with BPF, by thread */
	struct {
		uint64_t count_ns, lost, missing;
	} removed;       /* sums of removed groups */
	uint64_t unread; /* samples in the rings, as of the last read */
	uint8_t share;   /* of the newest record of a thread's own event: struct record_head */
	struct {
		uint64_t forked, ended; /* by records */
	} threads;
	/* With a BPF sampler: samples that are of threads' own events. */
	struct {
		uint64_t samples, unread;
		uint64_t sampled_ns; /* their periods */
		bool thinned;        /* only a part of the ticks was kept at times */
		bool execed;         /* a thread has lost its events by an exec */
		bool forked;         /* a thread has started another, or a process */
	} own;
	struct {
		uint64_t sent;   /* samples that the BPF programs sent or deferred to the event */
		uint64_t failed; /* and for which the ring had no room */
	} programs;
	struct {
		uint64_t ring_full, skipped, unfinished, late[LOSS_SAMPLERS],
			late_weight[LOSS_SAMPLERS];
		struct lost_hits hits;
	} reported; /* the highest figures that were read */
};

/* Chooses the way of counting. To be called when events of another kind were opened. */
void stream_account_choose(struct perf_stream *);
/* Keeps the figures of a group that will be closed. */
void stream_account_remove_group(struct perf_stream *, struct event_group *);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What snapshot.c (events), perf_stream_read.c (their records) and perf_stream_counts.c (the
 * account) share. Nobody else includes this. */
#ifndef EVENTS_PERF_STREAM_STATE_H
#define EVENTS_PERF_STREAM_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include <fusee/unwinder.bpf.h>

#include "../../bpf/records.h"
#include "base/hashmap.h"
#include "events/event.h"
#include "events/ring.h"
#include "events/perf_stream.h"
#include "events/missed_ticks.h"

union record {
	struct record_head head;
	struct record_tick tick; /* all but emissions begin with it */
	struct record_stack stack;
	struct record_copy copy;
	struct record_deferred deferred;
	struct record_missed missed;
	struct record_emission emission;
};

struct cpu {
	struct ring ring; /* its first event's; the others write into it */
	int number, fd;
	int output;                        /* the event of the BPF sampler's records, -1: none */
	uint64_t output_id, old_output_id; /* old: that of before the CPU went and came back */
	bool gone;                         /* it is offline */
	/* The last tick that the BPF sampler deferred: its sample follows. tid 0: none. */
	struct {
		uint32_t tid;
		struct walk_stop stop;
	} deferred;
};

/* The events of one target, or of all that were there at the beginning. */
struct group {
	struct group *next;
	uint32_t number; /* 0: those of the beginning */
	bool cpus;       /* one event a CPU, which tells of all that runs there */
	uint64_t period_ns, samples;
	int *fds;
	uint32_t nfds, cap;
};

struct perf_stream {
	struct perf_stream_options o;
	struct event_form form;
	struct cpu *cpus;
	uint32_t ncpus;
	struct group base, *groups; /* dynamic ones, newest first */
	uint32_t numbers;
	uint64_t cpus_ns;   /* with bpf: period of the CPUs' own events; 0: there are none */
	struct hashmap ids; /* event -> struct group * */
	struct perf_stream_counts gone; /* of removed groups */
	bool enabled;
	int epoll;
	int online; /* of cpus_open() */
	struct missed_ticks
		tallies; /* by event and thread; or, by what the BPF sampler tells, by thread */
	struct perf_stream_counts counts; /* skipped: in tallies */
	struct {
		uint64_t ring_full, skipped;
	} reported; /* the most that perf_stream_counts() returned */
	uint64_t horizon;
	uint64_t looked;
	uint64_t ration;     /* of copies' bytes: each CPU's until the next look */
	union record record; /* of the BPF sampler; in the ring it is not aligned */
	unsigned char
		stack[(RECORD_COPY_PAGES + 1) * RECORD_PAGE]; /* of it, each page in its place */
};

/* Looks which CPUs went and which came, and samples these. Once a second. true: what happened there
 * until now was not told of. */
bool perf_stream_follow_cpus(struct perf_stream *);
/* The rings were read, which took so long: so much of stacks may be copied until the next time. */
void perf_stream_ration(struct perf_stream *, uint64_t took_ns);
/* Copies a record of the BPF sampler out of `len` bytes of the ring, where it is not aligned.
 * false: its kind is unknown, or its size is none of this kind or above len. */
bool perf_stream_read_record(union record *, const void *from, uint32_t len);
/* Adds what a group's events saw. */
void perf_stream_count_group(struct perf_stream *, const struct group *,
			     struct perf_stream_counts *);
#endif

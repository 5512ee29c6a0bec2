/* SPDX-License-Identifier: Apache-2.0 */
/* The perf stream, for the files of core/events that it consists of. Only they include this:
 *
 *	perf_stream.c       opening, targets, closing
 *	group.c             the events of one target
 *	stream_cpu.c        rings and output event of one CPU
 *	output_ring.c       the ring of a CPU's output event, which is exchanged as it fills
 *	stream_cpus.c       CPUs that go offline and come back, and their budget of copies
 *	perf_stream_read.c  records in the order of their time, to the handlers
 *	stream_account.c    ticks without a sample
 */
#ifndef EVENTS_PERF_STREAM_STATE_H
#define EVENTS_PERF_STREAM_STATE_H

#include "base/hashmap.h"
#include "events/internal/bpf_record.h"
#include "events/internal/cpu_watch.h"
#include "events/internal/event.h"
#include "events/internal/group.h"
#include "events/perf_stream.h"
#include "events/internal/stream_account.h"
#include "events/internal/stream_cpu.h"

#define MOST_OWN_THREADS 8u

/* The timer that has the rings read again after a wake. */
struct look {
	int fd;              /* -1: none */
	uint64_t ns;         /* its time after the last reading; 0: no more follows */
	bool is_set, is_new; /* it was set; `ns` is another time */
};

struct perf_stream {
	struct perf_stream_options o;
	struct event_form form;
	struct stream_cpu *cpus;
	uint32_t ncpus;
	struct event_group base;     /* of the targets in the options */
	struct event_group used;     /* counts the CPU time of the targets; or has no events */
	struct event_group *groups;  /* of perf_stream_add..(), newest first */
	pid_t own[MOST_OWN_THREADS]; /* threads with events of their own */
	uint32_t nown;
	uint32_t last_number;          /* of a group */
	struct hashmap group_by_event; /* id -> struct event_group *, without the base */
	uint64_t cpu_period_ns;        /* of CPU events beside a BPF sampler; 0: there are none */
	struct stream_account account;
	struct bpf_record_reader reader;
	uint64_t output_bytes; /* most of a CPU's output ring; 0: it has none of its own */
	uint64_t copy_budget;  /* bytes of stacks that a CPU may copy until the next read */
	bool enabled;
	int epoll;
	int online_fd; /* of cpus_open() */
	struct cpu_watch watch;
	uint64_t cpus_read_ns; /* when stream_cpus_follow() ran last, CLOCK_MONOTONIC */
	uint64_t horizon_ns;   /* of perf_stream_horizon() */
	bool behind;           /* perf_stream_is_behind() */
	struct look look;
};

/* Bytes of the rings of all CPUs. */
uint64_t perf_stream_default_rings(const struct perf_stream_options *);
/* Bytes of a stack copy: a copy that takes half of a ring leaves room for other records. */
uint32_t perf_stream_copy_bytes(const struct perf_stream *);
/* Do samplers of plugins choose samples? */
static inline bool perf_stream_has_waits(const struct perf_stream *s)
{
	return s->o.wait_periods.n;
}

/* Its events have no ticks that are samples: they bring the sideband. */
static inline bool perf_stream_is_silent(const struct perf_stream *s)
{
	return s->o.waits || (s->o.hit_period && !s->o.hits_beside);
}
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* One CPU of a perf stream: its ring, and the event that carries the BPF sampler's records. */
#ifndef EVENTS_STREAM_CPU_H
#define EVENTS_STREAM_CPU_H

#include <stdbool.h>
#include <stdint.h>

#include "../../../bpf/records.h"
#include "events/internal/event.h"
#include "events/internal/output_ring.h"
#include "events/internal/ring.h"

struct bpf_sampler;

struct stream_cpu {
	int number;
	bool offline;
	struct output_ring out; /* zeros: the BPF sampler's records are in the events' ring */
	struct ring ring;       /* of the events */
	int ring_fd; /* borrowed: the event whose ring it is, all others write into it; -1: none */
	int output;  /* the event of the BPF sampler's records; -1: none */
	uint64_t output_id;
	/* Before the CPU went offline and came back, or the ring was exchanged; records may still
	 * be in the ring. */
	uint64_t old_output_id;
	/* The last tick that the BPF sampler deferred: the event's own sample follows. tid 0:
	 * none. */
	struct {
		uint32_t tid;
		uint8_t share;   /* of struct sample */
		uint64_t period; /* likewise */
		struct walk_stop stop;
		bool labeled;
	} deferred;
	struct record_returns returns; /* of the sample that follows; n 0: nothing */
	struct record_labels labels;   /* the last */
};

/* Maps the ring of this event, of at most size bytes, and adds it to the epoll descriptor. 0 or
 * -errno. */
int stream_cpu_open_ring(struct stream_cpu *, int epoll, int fd, uint64_t size);
/* Opens the output event, again after the CPU came back; size: with a ring of its own of at most
 * that size, whose event is added to the epoll descriptor. Without a ring of the events nothing
 * happens. If it fails, the former output event stays. 0 or -errno. */
int stream_cpu_open_output(struct stream_cpu *, const struct event_form *, struct bpf_sampler *,
			   int epoll, uint64_t size);
/* A PERF_RECORD_SAMPLE comes from the BPF sampler. */
bool stream_cpu_is_output(const struct stream_cpu *, const struct perf_event_header *);
void stream_cpu_close(struct stream_cpu *);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The perf events of the snapshot sampler: how they are opened, and how their records are read. */
#ifndef EVENTS_EVENT_H
#define EVENTS_EVENT_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "events/perf_stream.h"

/* Which parts this kernel and this user get: found by trying, the same for all events of a
 * snapshot. */
struct event_form {
	bool kernel;  /* kernel mode is sampled, with callchains */
	bool read;    /* samples carry the event's count (inherited ones: Linux 6.13) */
	bool lost;    /* counts of lost samples (Linux 6.0) */
	bool settled; /* has been found out */
};

/* Opens the event of one thread on one CPU (tid -1: of the CPU). Gives up parts of the form where
 * the kernel wants that and the form is not settled. fd or -errno. */
int event_open(struct event_form *, const struct perf_stream_options *, pid_t tid, int cpu);

/* An event that samples nothing, on which other events' ring of that CPU hangs. fd or -errno. */
int event_open_ring(int cpu);
/* An event that carries the BPF sampler's records. fd or -errno. */
int event_open_output(const struct event_form *, int cpu);
/* What such an event carried: the bytes and how many, on which CPU, and the process and thread as
 * our pid namespace has them (UINT32_MAX: no more); NULL: it lies about its size.
 */
const void *event_parse_output(const struct perf_event_header *, uint32_t *len, uint32_t *cpu,
			       uint32_t ids[2]);
uint64_t event_sample_id(const struct perf_event_header *); /* of a sample; 0: too short */
int event_id(int fd, uint64_t *id); /* as in the samples of it and of those that inherit it */

uint64_t event_time(const struct perf_event_header *); /* ns */

struct event_sample {
	struct sample s;
	uint64_t id, value; /* event and its count, with form.read */
};
/* false: a record that lies about its size. */
bool event_parse_sample(const struct event_form *, const struct perf_event_header *,
			struct event_sample *);
/* MMAP2, COMM, FORK, EXIT: calls the handler. LOST and THROTTLE are the caller's. */
void event_parse_sideband(const struct perf_event_header *, const struct perf_stream_handlers *);

/* The event's own count, children's included, and the samples that it lost (0 unless form.lost). */
int event_read(const struct event_form *, int fd, uint64_t *count, uint64_t *lost);
#endif

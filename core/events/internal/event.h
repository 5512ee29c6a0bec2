/* SPDX-License-Identifier: Apache-2.0 */
/* The perf events of a stream: how each is opened, and how its records are parsed. */
#ifndef EVENTS_EVENT_H
#define EVENTS_EVENT_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "events/kind.h"
#include "events/perf_stream.h"

/* The features that this kernel and this user have. The first event_open() tries them; then the
 * form is the same for all events of a stream. */
struct event_form {
	bool kernel;  /* kernel mode is sampled, with callchains */
	bool read;    /* samples carry the event's count (inherited events: Linux 6.13) */
	bool lost;    /* events count their lost records (Linux 6.0) */
	bool settled; /* the three above are known */
	/* The period of all samples, which do not carry it; 0: samples carry their period. The
	 * kernel ignores the period of its own events if samples carry it, and samples each event.
	 */
	uint64_t period;
};

struct event_options {
	const struct event_kind *kind; /* what is counted; NULL: CPU time */
	uint64_t period_ns;            /* of CPU time; of another kind: a number of events */
	uint32_t stack_bytes;          /* of the copied user stack; a multiple of 8 */
	uint32_t wake_bytes;           /* ring_wake_bytes(), for the event that has the ring */
	bool kernel;                   /* sample kernel mode, if allowed */
	bool read;                     /* samples carry the event's count, if the kernel can */
	bool idle;                     /* the event of a CPU counts idle time too */
	bool sideband;                 /* also records mmap, comm, fork and exit */
	bool on_exec;                  /* enabled by the next exec */
	bool silent;                   /* it has no samples: for sideband */
	bool inherit; /* threads and processes that the thread starts have it too */
};

/* Opens the sampling event of one thread on one CPU, or, tid -1, of the CPU. While the form is not
 * settled, it gives up features that the kernel refuses. Returns a file descriptor or -errno. */
int event_open(struct event_form *, const struct event_options *, pid_t tid, int cpu);
/* Opens an event that counts the CPU time of a thread, and of the threads and processes that it
 * starts, on all CPUs, and does not sample. A descriptor or -errno. */
int event_open_count(const struct event_form *, pid_t tid, bool on_exec);
/* Opens an event without samples; other events of the CPU write into its ring. A descriptor or
 * -errno. */
int event_open_ring(int cpu, uint32_t wake_bytes);
/* Opens the event that carries the records of the BPF sampler; wake_bytes: ring_wake_bytes(), if it
 * is to have a ring. A descriptor or -errno. */
int event_open_output(const struct event_form *, int cpu, uint32_t wake_bytes);
/* Opens an event of a CPU that counts nothing; read() gives its count and then the time for which
 * it was enabled, in ns. A descriptor or -errno. */
int event_open_clock(int cpu);
/* The id in the samples of the event and of those that inherit it. 0 or -errno. */
int event_id(int fd, uint64_t *id);
/* The event's count in ns, children included, and the number of its records that were lost (0
 * unless form.lost). 0 or -errno. */
int event_read(const struct event_form *, int fd, uint64_t *count_ns, uint64_t *lost);

/* ---- records; the kernel's sizes are checked ---- */

/* CLOCK_MONOTONIC ns. */
uint64_t event_time(const struct perf_event_header *);
/* The event's id in a PERF_RECORD_SAMPLE. 0: the record is too short. */
uint64_t event_sample_id(const struct perf_event_header *);

struct event_sample {
	struct sample s;   /* its pointers point into the record */
	uint64_t id;       /* the event's */
	uint64_t count_ns; /* the event's count, with form.read */
};
/* false: a size in the record is wrong. */
bool event_parse_sample(const struct event_form *, const struct perf_event_header *,
			struct event_sample *);
/* Parses what an event of event_open_output() carried: len bytes from cpu; ids: pid and tid in our
 * pid namespace, UINT32_MAX where they have ended. NULL: a size in the record is wrong. */
const void *event_parse_output(const struct perf_event_header *, uint32_t *len, uint32_t *cpu,
			       uint32_t ids[2]);
/* Calls the handler of an MMAP2, COMM, FORK or EXIT record; ignores others. */
void event_parse_sideband(const struct perf_event_header *, const struct perf_stream_handlers *);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The sampling events of one target of a perf stream: of its threads, or of all CPUs. */
#ifndef EVENTS_GROUP_H
#define EVENTS_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct perf_stream;
struct stream_cpu;

struct event_group {
	struct event_group *next;
	uint32_t number; /* 0: the targets of the stream's options */
	bool cpus;       /* one event for each CPU */
	bool beside;     /* further such events, without sideband: perf_stream_add_cpus_beside() */
	bool own;        /* of threads that no other event samples; children do not inherit them */
	uint64_t period_ns;
	int *fds;
	uint32_t nfds;
	size_t cap;
	uint64_t samples; /* handed over */
	uint64_t unread;  /* samples in the rings, as of perf_stream_counts() */
	/* Sums over the events, as of event_group_read(). */
	uint64_t count_ns, lost;
};

/* The most bytes of the ring of each CPU for what the BPF programs send; 0: it is that of the
 * events. */
uint64_t event_group_output_size(const struct perf_stream *);
/* Bytes of the ring of each CPU for its events. */
uint64_t event_group_ring_size(const struct perf_stream *);
/* Opens the events of all threads of a process; what these start inherits them. 0; -ESRCH: the
 * process has ended; -errno. On an error the group is to be closed. */
int event_group_add_process(struct perf_stream *, struct event_group *, pid_t pid);
/* Opens an event that counts and does not sample for each thread of a process. Results as above. */
int event_group_add_count(struct perf_stream *, struct event_group *, pid_t pid);
/* Opens the events of a thread, which its children do not inherit. Once bpf_sampler_add_thread()
 * was called, no other event samples the thread. 0 or -errno. */
int event_group_add_own(struct perf_stream *, struct event_group *, pid_t tid);
/* Opens the events of all CPUs that are online. 0 or -errno. */
int event_group_add_cpus(struct perf_stream *, struct event_group *);
/* The CPU is online again: opens its event, where the group has one for each CPU. 0 or -errno. */
int event_group_reopen(struct perf_stream *, struct event_group *, struct stream_cpu *);
/* Opens an event without samples whose ring the CPU's other events write into. 0 or -errno. */
int event_group_add_ring(struct perf_stream *, struct event_group *, struct stream_cpu *);
/* PERF_EVENT_IOC_ENABLE or _DISABLE on all events. 0 or the last -errno. */
int event_group_ioctl(const struct event_group *, unsigned long request);
/* Sums up the events' counts. */
void event_group_read(const struct perf_stream *, struct event_group *);
void event_group_close(struct perf_stream *, struct event_group *);
#endif

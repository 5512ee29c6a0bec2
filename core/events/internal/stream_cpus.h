/* SPDX-License-Identifier: Apache-2.0 */
/* The CPUs of a perf stream, as they go offline and come back. */
#ifndef EVENTS_STREAM_CPUS_H
#define EVENTS_STREAM_CPUS_H

#include <stdbool.h>
#include <stdint.h>

struct perf_stream;

/* Lists the CPUs that are online. 0 or -errno. */
int stream_cpus_open(struct perf_stream *);
/* Reads which CPUs are online and opens the events of those that came back. To be called once a
 * second. true: a CPU came back, and what happened there until now is not in the records. */
bool stream_cpus_follow(struct perf_stream *);
/* The rings were read, which took took_ns: sets how many bytes of stacks the BPF sampler may copy
 * on each CPU until the next time. */
void stream_cpus_set_copy_budget(struct perf_stream *, uint64_t took_ns);
void stream_cpus_close(struct perf_stream *);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU time and the memory of the agent's own processes. */
#ifndef AGENT_USAGE_H
#define AGENT_USAGE_H

#include <stdint.h>

struct profiler;

/* CPU time in seconds. */
struct usage_cpu {
	double agent;   /* this process, all threads */
	double workers; /* its workers and openers, with those that have ended */
	double bpf; /* its BPF programs of ticks, while they are timed: bpf_sampler_set_timed() */
};

void usage_cpu(const struct profiler *, struct usage_cpu *);
/* Resident memory of this process. 0: /proc is not readable. */
uint64_t usage_resident_bytes(void);
/* Memory that was allocated and not freed; without what the allocator keeps of freed memory. */
uint64_t usage_heap_bytes(void);
#endif

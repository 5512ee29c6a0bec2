/* SPDX-License-Identifier: Apache-2.0 */
/* What core/events sets at the BPF sampler and reads of it. For one thread. */
#ifndef BPF_SAMPLER_EVENTS_H
#define BPF_SAMPLER_EVENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/sampler.h"

/* The program runs at each tick of this perf event, and of those that inherit from it. To be called
 * before the event is enabled. 0 or -errno. */
int bpf_sampler_attach(struct bpf_sampler *, int event);
/* The perf event that carries records into this CPU's ring. 0 or -errno. */
int bpf_sampler_set_output(struct bpf_sampler *, int cpu, int event);
/* Bytes of a stack that are copied where it is not unwound; 0: the events copy stacks. */
void bpf_sampler_set_copy_bytes(struct bpf_sampler *, uint32_t bytes);
/* The rings were read. Until the next call each CPU sends at most this many bytes of stack copies;
 * further ticks come without a stack. Before the first call there is no limit. */
void bpf_sampler_begin_round(struct bpf_sampler *, uint64_t copy_bytes);
/* Readable when stacks were not unwound for want of mappings whose records may be in the rings.
 * Owned by the sampler. */
int bpf_sampler_wake_fd(const struct bpf_sampler *);
/* Was it readable? It is not until the next such stack. */
bool bpf_sampler_take_wake(struct bpf_sampler *);
/* Reading the rings and publishing what they said took this long. If wakes have taken more than a
 * small share of a CPU for a while, the next is so much later. */
void bpf_sampler_woke(struct bpf_sampler *, uint64_t took_ns);
/* Have they not? Then the rings may be read again soon. */
bool bpf_sampler_may_wake(const struct bpf_sampler *);
/* From now on each CPU has an event of its own with this period (0: none), idle time included.
 * Ticks that the CPUs' own events missed are counted anew. */
void bpf_sampler_set_cpu_period(struct bpf_sampler *, uint64_t period_ns);
/* Each CPU has or had another event of its own with this period, which no other event has. 0;
 * -ENOSPC: there are too many; -errno. */
int bpf_sampler_add_cpu_period(struct bpf_sampler *, uint64_t period_ns);
void bpf_sampler_remove_cpu_period(struct bpf_sampler *, uint64_t period_ns);
/* Ticks that were due on the CPUs' own events, not in idle time, and that the program did not see,
 * because the timer fired late or the kernel did not run the program. */
struct bpf_missed_ticks {
	uint64_t all;
	uint64_t selected; /* while a process ran whose ticks are samples */
};
void bpf_sampler_missed_ticks(struct bpf_sampler *, struct bpf_missed_ticks *);
/* This thread has events of its own, whose ticks are its samples from now on; no others are. It
 * ends with its exec or exit. 0; -E2BIG: too many have; or -errno. */
int bpf_sampler_add_thread(struct bpf_sampler *, pid_t tid);
#endif

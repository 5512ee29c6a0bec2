/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event source of each process, by the rate that was decided for it.
 *
 * With the BPF sampler each CPU has one event at the plan's rate, and a BPF map tells of which
 * processes ticks are taken. A process with a lower rate gets some of the CPUs' ticks, chosen at
 * random. For a higher rate each CPU has another event with that rate, whose ticks are taken of the
 * processes with this rate. If there is no BPF sampler, or no events of CPUs can be opened, each
 * process has events of its own, which its children inherit. A child of a sampled process is
 * sampled from its first instruction on; samples of inherited events are dropped if the child has
 * another decision. For the control thread.
 */
#ifndef POLICY_RATES_H
#define POLICY_RATES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/sampler.h"
#include "events/perf_stream.h"

#define RATES_ALL 256u /* the share of all samples */

struct rates;

/* The perf stream and the BPF sampler (NULL: none) are borrowed. 0 or -ENOMEM. */
int rates_new(struct rates **ret, struct perf_stream *, struct bpf_sampler *);
void rates_free(struct rates *); /* NULL is fine */
/* Sets the period of the CPUs' events, that of the plan's rate, before processes are set.
 * keep_unknown: ticks of processes that are not set yet are taken. 0, or -errno of opening the
 * events: the earlier events continue. */
int rates_set_base(struct rates *, uint64_t period_ns, bool keep_unknown);
/* Keeps `share` of RATES_ALL samples due by the rates of processes, each with accordingly more
 * weight; 0: all. The CPUs' events then tick less often, so that most other ticks never occur.
 * Without a BPF sampler the caller must drop samples. */
void rates_set_share(struct rates *, uint8_t share);
/* A process began. It inherits its parent's event source if the source's events were open at
 * time_ns (CLOCK_MONOTONIC; 0: unknown); else it has none until it is set. */
void rates_forked(struct rates *, pid_t parent, pid_t child, uint64_t time_ns);
/* Sets the period of a process; 0: it is not sampled. inherited: the period is its parent's, since
 * the fork. 0, or -errno of opening its events (-ESRCH: it has ended): it is then not sampled. */
int rates_set(struct rates *, pid_t pid, uint64_t period_ns, bool inherited);
void rates_exited(struct rates *, pid_t pid); /* removes the process */
/* The group of the process's event source in the perf stream; 0: none. */
uint32_t rates_group(const struct rates *, pid_t pid);
/* Whether the sample's process is sampled, and the sample is from its event source, or from its
 * source at the time of the tick. */
bool rates_has_sample(const struct rates *, const struct sample *);
/* CPU time in ns that one tick of the process represents; 0: the sample's own period. */
uint64_t rates_weight_ns(const struct rates *, pid_t pid);
/* Once a second: closes event sources that have had no process for a second. */
void rates_tidy(struct rates *, uint64_t now_ns);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which events feed which process, and what the kernel is told of that.
 *
 * With the BPF sampler each CPU has one event at the plan's rate, and the kernel is told before any
 * cost whose ticks are taken; of a process that is to be sampled less often some are, by chance.
 * One that is to be sampled more often has events of its own, which all that it starts inherits; so
 * has each one where there is no BPF sampler, or no event for a whole CPU. A child of a sampled
 * process is sampled from its first instruction; what inherited events take of one whose decision
 * is another is dropped. For the control thread.
 */
#ifndef POLICY_RATES_H
#define POLICY_RATES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/sampler.h"
#include "events/perf_stream.h"

struct rates;

/* The snapshot and the BPF sampler (NULL: none) are borrowed. 0 or -ENOMEM. */
int rates_new(struct rates **ret, struct perf_stream *, struct bpf_sampler *);
void rates_free(struct rates *); /* NULL is fine */
/* The plan's rate, before processes are set by it; keep: ticks of a process that is not set yet are
 * taken. 0, or -errno of the CPUs' events: what ran before goes on. */
int rates_base(struct rates *, uint64_t period_ns, bool keep);
/* A process began: it inherits what its parent is fed by, if that stood at that time
 * (CLOCK_MONOTONIC ns, 0: unknown, then it gets its own when it is set). */
void rates_forked(struct rates *, pid_t parent, pid_t child, uint64_t time_ns);
/* The process is to be sampled with this period; 0: not at all. inherited: as its parent is, with
 * whose decision it began. 0, or -errno of its events; -ESRCH: it is gone. */
int rates_set(struct rates *, pid_t pid, uint64_t period_ns, bool inherited);
void rates_exited(struct rates *, pid_t pid); /* nothing is decided about it any more */
/* The group that its samples come from; 0: none. */
uint32_t rates_group(const struct rates *, pid_t pid);
/* Does this sample come from the events that feed its process? */
bool rates_feeds(const struct rates *, const struct sample *);
/* What a tick of it stands for, ns of CPU time; 0: as the sample says. */
uint64_t rates_weight(const struct rates *, pid_t pid);
/* Once a second: events that have fed nobody for a second end. */
void rates_tidy(struct rates *, uint64_t now_ns);
#endif

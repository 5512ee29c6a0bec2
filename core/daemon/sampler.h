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
#ifndef DAEMON_SAMPLER_H
#define DAEMON_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "sampling/bpf_sampler.h"
#include "sampling/snapshot.h"

struct sampler;

/* The snapshot and the BPF sampler (NULL: none) are borrowed. 0 or -ENOMEM. */
int sampler_new(struct sampler **ret, struct snapshot *, struct bpf_sampler *);
void sampler_free(struct sampler *); /* NULL is fine */
/* The plan's rate, before processes are set by it; keep: ticks of a process that is not set yet are
 * taken. 0, or -errno of the CPUs' events: what ran before goes on. */
int sampler_base(struct sampler *, uint64_t period_ns, bool keep);
/* A process began: it inherits what its parent is fed by, if that stood at that time
 * (CLOCK_MONOTONIC ns, 0: unknown, then it gets its own when it is set). */
void sampler_forked(struct sampler *, pid_t parent, pid_t child, uint64_t time_ns);
/* The process is to be sampled with this period; 0: not at all. inherited: as its parent is, with
 * whose decision it began. 0, or -errno of its events; -ESRCH: it is gone. */
int sampler_set(struct sampler *, pid_t pid, uint64_t period_ns, bool inherited);
void sampler_exited(struct sampler *, pid_t pid); /* nothing is decided about it any more */
/* The group that its samples come from; 0: none. */
uint32_t sampler_group(const struct sampler *, pid_t pid);
/* Does this sample come from the events that feed its process? */
bool sampler_feeds(const struct sampler *, const struct snapshot_sample *);
/* What a tick of it stands for, ns of CPU time; 0: as the sample says. */
uint64_t sampler_weight(const struct sampler *, pid_t pid);
/* Once a second: events that have fed nobody for a second end. */
void sampler_tidy(struct sampler *, uint64_t now_ns);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which events feed which process. On the snapshot sampler a target's events are inherited by all
 * that it starts: a child of a sampled process is sampled from its first instruction. One whose
 * decision is another than its parent's gets events of its own, and what the inherited ones still
 * take of it is dropped unread. For the control thread.
 */
#ifndef DAEMON_SAMPLER_H
#define DAEMON_SAMPLER_H

#include <stdint.h>
#include <sys/types.h>

#include "sampling/snapshot.h"

struct sampler;

int sampler_new(struct sampler **ret,
		struct snapshot *);  /* the snapshot is borrowed. 0 or -ENOMEM */
void sampler_free(struct sampler *); /* NULL is fine */
/* A process began: it inherits what its parent is fed by, if that stood at that time
 * (CLOCK_MONOTONIC ns, 0: unknown, then it gets its own when it is set). */
void sampler_forked(struct sampler *, pid_t parent, pid_t child, uint64_t time_ns);
/* The process is to be sampled with this period; 0: not at all. 0, or -errno of its events; -ESRCH:
 * it is gone. */
int sampler_set(struct sampler *, pid_t pid, uint64_t period_ns);
/* The group whose samples of this process count; 0: none. */
uint32_t sampler_group(const struct sampler *, pid_t pid);
/* How often they tick; 0: none do. */
uint64_t sampler_period(const struct sampler *, pid_t pid);
/* Once a second: events that have fed nobody for a second end. */
void sampler_tidy(struct sampler *, uint64_t now_ns);
#endif

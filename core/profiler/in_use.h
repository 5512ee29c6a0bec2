/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory in use: which of the followed hits of collectors have not been freed. For the thread of
 * the profiler, whose BPF sampler follows them.
 */
#ifndef PROFILER_IN_USE_H
#define PROFILER_IN_USE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "bpf/inuse.h"

struct collector;
struct profiler;

struct in_use_totals {
	uint64_t bytes, objects;
	struct bpf_inuse_counts lost;
};

/* {0}: nothing was read. */
struct in_use {
	uint32_t slot;               /* of the pipeline, whose collector has the followed hits */
	struct buf ids;              /* uint32_t, ascending */
	size_t kept;                 /* followed hits that the last in_use_prune() has kept */
	struct in_use_totals totals; /* of the last in_use_keep() */
};

void in_use_fini(struct in_use *);
/* Reads what is in use now; calls: also what calls are about to return. 0 or -errno. */
int in_use_read(struct in_use *, const struct profiler *, bool calls);
/* The collector has only followed hits that were in use at that time. 0 or -ENOMEM. */
int in_use_keep(struct in_use *, const struct profiler *, struct collector *);
/* Forgets what has been freed in the collector of the slot, if that is worth its while. 0 or
 * -errno. */
int in_use_prune(struct in_use *, const struct profiler *);
#endif

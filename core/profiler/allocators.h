/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probes at the functions of allocators: of the C library, or of any program or library that brings
 * its own. They are found by name in each file that a sampled process maps, when that is known, and
 * are of that process only, unless all processes are recorded. For the thread of the profiler.
 */
#ifndef PROFILER_ALLOCATORS_H
#define PROFILER_ALLOCATORS_H

#include <stdint.h>

struct allocators;
struct in_use_ledger;
struct json;
struct profiler;

/* The profiler's BPF sampler was opened for probes; it is borrowed. 0 or -ENOMEM. */
int allocators_new(struct allocators **ret, struct profiler *);
void allocators_free(struct allocators *); /* before the profiler is closed; NULL is fine */
/* What is in use is followed, for windows of a dynamic profiler. 0 or -errno. */
int allocators_follow(struct allocators *);
/* NULL: it is not. NULL is fine. */
struct in_use_ledger *allocators_in_use(const struct allocators *);
/* Probes what is known now and was not at the last call, and removes probes of what has ended: to
 * be called now and then. Does not wait. */
void allocators_update(struct allocators *);
/* The same, and waits some seconds for the files that are to be searched first; NULL is fine. */
void allocators_prepare(struct allocators *);

/* Removes all probes, in the background; NULL is fine. */
void allocators_stop(struct allocators *);

struct allocator_counts {
	uint32_t files;     /* that have an allocator */
	uint32_t processes; /* with probes, once for each such file of each */
	uint32_t now;       /* of these, that have not ended */
	uint32_t unprobed;  /* likewise without, at first or to their end */
	/* Why, the last; 0: all have probes. -E2BIG: there are too many; -EREMOTE: a file is on a
	 * file system that can keep readers waiting. */
	int err;
};

/* Such a reason in words. */
const char *allocators_explain(int err);

struct allocator_counts allocators_counts(const struct allocators *);
/* The member `alloc` of an answer about an agent's state, and the metrics. */
void allocators_json(const struct allocators *, struct json *);
void allocators_metrics(const struct allocators *);
/* What the BPF sampler has counted, by enum probe_result. */
void allocators_hits(const struct allocators *, uint64_t counts[]);
/* Calls each() for a few of the files of which it is not known whether they have an allocator.
 * Returns how many there are. */
uint32_t allocators_unknown(const struct allocators *,
			    void (*each)(void *arg, const char *path, const char *why), void *arg);
#endif

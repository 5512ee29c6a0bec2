/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probes at the functions of allocators: of the C library, or of any program or library that brings
 * its own. They are found by name in each file that a sampled process maps, when that is known, and
 * are of that process only. For the thread of the profiler.
 */
#ifndef PROFILER_ALLOCATORS_H
#define PROFILER_ALLOCATORS_H

#include <stdint.h>

struct allocators;
struct profiler;

/* The profiler's BPF sampler was opened for probes; it is borrowed. 0 or -ENOMEM. */
int allocators_new(struct allocators **ret, struct profiler *);
void allocators_free(struct allocators *); /* before the profiler is closed; NULL is fine */
/* Attaches probes for what is known now and was not at the last call: to be called now and then. */
void allocators_update(struct allocators *);

struct allocator_counts {
	uint32_t files;     /* that have an allocator */
	uint32_t processes; /* with probes, once for each such file of each */
	uint32_t unprobed;  /* without: there are too many, or the kernel refused */
	int err;            /* the last of these refusals, 0: none was */
};

struct allocator_counts allocators_counts(const struct allocators *);
#endif

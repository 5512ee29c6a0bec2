/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What lies in the maps of probes.bpf.o alone; shared with user space (core/bpf/probes.c). */
#ifndef BPF_PROBE_MAPS_H
#define BPF_PROBE_MAPS_H

#ifndef __bpf__
#include <linux/types.h>
#endif

/* What became of hits: X(name, text). Texts are keys of --stats. */
#define PROBE_RESULTS(X)                                                                        \
	X(PROBE_HITS, "hits")             /* of selected processes, not nested */               \
	X(PROBE_VALUE, "value")           /* the sum of their values */                         \
	X(PROBE_NESTED, "nested")         /* an allocator's functions, called by one another */ \
	X(PROBE_CHOSEN, "chosen")         /* a sample is due */                                 \
	X(PROBE_BUSY, "during another")   /* of these: the walk of another */                   \
	X(PROBE_NOT_WALKED, "not walked") /* likewise: the kernel refused to call the walk */

#define PROBE_NAME(name, text) name,

enum probe_result { PROBE_RESULTS(PROBE_NAME) PROBE_RESULT_COUNT };

/* The functions of allocators, by where the size is. A function that may call another has a higher
 * rank. */
enum alloc_kind {
	ALLOC_MALLOC,       /* (size): rank 0 */
	ALLOC_REALLOC,      /* (pointer, size): rank 1 */
	ALLOC_ALIGNED,      /* (alignment, size) */
	ALLOC_POSIX,        /* (where, alignment, size): rank 2 */
	ALLOC_CALLOC,       /* (n, size) */
	ALLOC_REALLOCARRAY, /* (pointer, n, size) */
	ALLOC_NEW,          /* (size) */
	ALLOC_KINDS
};

/* Of a probe at such a function: its cookie. */
#define ALLOC_COOKIE(kind, bytes) ((__u64)(bytes) << 8 | (kind))

/* The newest hit of an allocator's function on a CPU that was not nested. */
struct alloc_call {
	__u64 sp, returns; /* where the return address is, and what it is */
	__u64 lo, bytes;   /* of the function's code */
	__u64 value;
	__u32 tid, kind;
};

/* Map sampler_probe_cpus, per CPU: what became of hits, and the hit that is walked. */
struct probe_cpu {
	__u64 counts[PROBE_RESULT_COUNT];
	__u64 weight; /* how much of the value of all hits this one represents */
	__u64 value;  /* its own */
	__u64 busy;   /* hits that are between their choice and the end of their walk */
	struct alloc_call newest;
};
#endif

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What lies in the maps of probes.bpf.o alone; shared with user space (core/bpf/probes.c). */
#ifndef BPF_PROBE_MAPS_H
#define BPF_PROBE_MAPS_H

#ifndef __bpf__
#include <linux/types.h>
#endif

/* What became of hits: X(name, text). Texts are keys of --stats. */
#define PROBE_RESULTS(X)                                                      \
	X(PROBE_HITS, "hits")             /* of selected processes */         \
	X(PROBE_VALUE, "value")           /* the sum of their values */       \
	X(PROBE_CHOSEN, "chosen")         /* a sample is due */               \
	X(PROBE_BUSY, "during another")   /* of these: the walk of another */ \
	X(PROBE_NOT_WALKED, "not walked") /* likewise: the kernel refused to call the walk */

#define PROBE_NAME(name, text) name,

enum probe_result { PROBE_RESULTS(PROBE_NAME) PROBE_RESULT_COUNT };

/* Map sampler_probe_cpus, per CPU: what became of hits, and the hit that is walked. */
struct probe_cpu {
	__u64 counts[PROBE_RESULT_COUNT];
	__u64 weight; /* how much of the value of all hits this one represents */
	__u64 value;  /* its own */
	__u64 busy;   /* hits that are between their choice and the end of their walk */
};
#endif

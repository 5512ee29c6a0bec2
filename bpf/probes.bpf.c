/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The sampler of hits: the same walk, of threads that come to a uprobe. */
#define SAMPLER_OF_PROBES
#include "sampler.bpf.c"

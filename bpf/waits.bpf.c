/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The sampler of waits: the same walk, of threads that come back to their CPUs. */
#define SAMPLER_OF_WAITS
#define SAMPLER_IN_KERNEL
#include "sampler.bpf.c"

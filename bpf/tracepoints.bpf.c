/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The sampler of tracepoints: the same walk, of threads that come to one in the kernel. */
#define SAMPLER_OF_TRACEPOINTS
#define SAMPLER_IN_KERNEL
#include "sampler.bpf.c"

/* SPDX-License-Identifier: Apache-2.0 */
/* A sample with a copy of the user stack, as it is unwound in user space. */
#ifndef UNWIND_SAMPLE_H
#define UNWIND_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "../../bpf/frame.h"

/* perf's maximum: 64 KiB - 8 */
#define SAMPLE_MAX_STACK 65528u

struct sample {
	pid_t pid, tid;
	uint32_t cpu;
	uint32_t group;         /* whose event it was: of perf_stream_add(), else 0 */
	uint64_t time;          /* CLOCK_MONOTONIC ns */
	uint64_t period;        /* ns of CPU time it stands for */
	const uint64_t *kernel; /* kernel addresses, innermost first */
	uint32_t nkernel;
	uint32_t abi;      /* 0: no user registers (a kernel thread), 1: 32 bit, 2: 64 bit */
	uint64_t regs[17]; /* by DWARF number; 16: rip */
	const void *stack; /* what was copied from regs[7] = rsp upwards */
	uint32_t stack_len;
	uint64_t holes; /* bit i: page i of it, from the one on that rsp is in, could not be read */
	bool stack_full;       /* the copy has the size asked for: the stack may go on above */
	struct walk_stop stop; /* which language unwinder stopped the walk in the kernel */
};
#endif

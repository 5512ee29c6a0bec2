/* SPDX-License-Identifier: Apache-2.0 */
/* A sample with a stack copy, to be unwound in user space. */
#ifndef UNWIND_SAMPLE_H
#define UNWIND_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "../../bpf/frame.h"

/* perf's maximum in bytes: 64 KiB - 8 */
#define SAMPLE_MAX_STACK 65528u

/* Reads memory of a thread that is stopped. */
struct sample_memory {
	int (*read)(void *arg, void *dst, uint32_t len, uint64_t addr); /* 0, or -1: not all */
	void *arg;
};

/* What uretprobes have replaced in a thread's stack, by the kernel. */
struct sample_returns {
	uint64_t page;                /* address of the process's uprobe page; 0: not known */
	const struct walk_return *at; /* of the newest call first */
	uint32_t n;                   /* 0: nothing is known */
};

struct walk_frame; /* unwind/internal/walk_frames.h */

/* What the kernel has unwound of a stack: from one of its frames to the outermost frame, or to a
 * caller, from which user space goes on. */
struct sample_continuation {
	uint64_t pc, sp;         /* where it begins */
	uint64_t end_pc, end_sp; /* where it ends, that frame excluded; 0: it is complete */
	uint32_t number, after;  /* of use only behind the end of number `after`; 0: behind none */
	const struct walk_frame *frames;
	uint32_t n;
};

#define SAMPLE_CONTINUATIONS 8u

struct sample_continuations {
	uint64_t since; /* they were sent after that time, CLOCK_MONOTONIC ns; 0: none were sent */
	const struct sample_continuation *at;
	uint32_t n;
};

/* On what a thread works. Zeros: nothing has said so. */
struct sample_ids {
	uint64_t trace_id[2], span_id; /* as of struct fusee_sample */
	/* Labels, sorted by name, each name once: the bytes of name and value in a byte each, then
	 * both. Borrowed. */
	const unsigned char *texts;
	uint32_t texts_len;
};

#define SAMPLE_TEXTS (8 * 200u) /* bytes of them at most */

/* Of a hit of a probe, which the period of its sample represents. */
struct sample_hit {
	uint64_t value;    /* 0: it is of none */
	uint32_t followed; /* its id, if its memory is followed until it is freed; or 0 */
	uint8_t hook;      /* number of the hook; 0: of none */
};

/* Of a sampler's plugin: the words of its program. Zeros: the sample is of an event. */
struct sample_chosen {
	bool is;
	uint8_t sampler; /* its number */
	uint32_t words[2];
};

struct sample {
	pid_t pid, tid;
	uint32_t cpu;
	uint32_t group;              /* number of the events, see perf_stream_add(); or 0 */
	uint64_t time;               /* CLOCK_MONOTONIC ns */
	uint64_t period;             /* ns of CPU time that it represents, if `share` is 0 */
	struct sample_chosen chosen; /* in whose unit the period is then */
	struct sample_hit hit;
	uint8_t share;          /* of 256 such samples, those that were kept; 0: all */
	const uint64_t *kernel; /* addresses of kernel frames, leaf first */
	uint32_t nkernel;
	uint32_t abi;          /* 0: no user registers (a kernel thread), 1: 32 bit, 2: 64 bit */
	uint64_t regs[17];     /* by DWARF number; 7: rsp, 16: rip */
	const void *stack;     /* copy of the user stack from rsp upwards */
	uint32_t stack_len;    /* bytes */
	uint64_t holes;        /* bit i: page i of the copy, counted from rsp's, is absent */
	bool stack_full;       /* the copy has the requested size: the stack may continue above */
	struct walk_stop stop; /* which language unwinder stopped the walk in the kernel */
	struct sample_returns returns;
	struct sample_continuations continuations;
	struct sample_ids ids;
	/* There is no copy: the thread is stopped, and all of its memory can be read. NULL: not so.
	 */
	const struct sample_memory *memory;
	uint64_t tls;    /* with memory: the base of fs */
	bool in_syscall; /* with memory: pc is behind the instruction of a system call */
};
#endif

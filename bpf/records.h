/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the sampler's BPF programs and core/sampling share: the tables of processes that user space
 * writes, and the record of a walked stack that the kernel writes.
 */
#ifndef BPF_RECORDS_H
#define BPF_RECORDS_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#define SAMPLER_MAPPINGS 64u /* in one element; a process may have a chain of them */
#define SAMPLER_CHAIN 16u    /* so long: 1024 mappings */
#define SAMPLER_MAX_FRAMES 1024u
#define SAMPLER_MAX_KERNEL 127u /* kernel.perf_event_max_stack */
#define SAMPLER_TABLES 2u       /* native unwinders that may have tables */
#define SAMPLER_LANGUAGES 32u   /* unwinders; those of languages have programs by their number */

/* Where one unwinder's table of a file lies in fusee_slabs, in words. */
struct slab_range {
	__u32 at, words;
	__u32 id; /* of what lies there, never another's; 0: there are no numbers left */
	__u32 pad;
};

/* One executable mapping, or a part of one, whose code can be stepped in the kernel: [lo, hi). */
struct sampler_mapping {
	__u64 lo, hi;
	__u64 bias;  /* pc - bias: ELF virtual address */
	__u64 shift; /* pc - shift: file offset */
	struct slab_range table[SAMPLER_TABLES];
	struct slab_range language; /* of whom it is claimed by */
	__u32 file;                 /* 0: none; code that the native unwinders step all the same */
	__u32 claim;                /* 1 + its arg; 0: no language unwinder steps here */
};

/*
 * The mappings of one process, in order of address; an element of sampler_processes, of which [0]
 * is nobody's and tells when the last of them changed. User space rewrites it in place: `version`
 * is odd meanwhile, and another one afterwards, so that a walk which saw parts of both throws
 * itself away.
 */
struct sampler_process {
	__u32 version;
	__u32 n;
	__u32 next;    /* element with the mappings above, 0: none */
	__u32 program; /* 1 + the language unwinder whose program walks it; 0: sampler_tick does */
	__u64 id;      /* struct process's; 0: nobody's */
	__u64 as_of;   /* CLOCK_MONOTONIC ns: user space knows what was mapped until then */
	__u64 changed; /* likewise: when memory was last taken where code had been; the kernel's */
	struct sampler_mapping mappings[SAMPLER_MAPPINGS];
};

/* By process number, in sampler_pids. A child has its parent's from the fork on. */
struct sampler_life {
	__u64 id; /* of the element that it names */
	__u32 element;
	__u32 shared; /* it is the parent's */
};

/* What is decided about a process, by its number, in sampler_decisions. A child has its parent's
 * from the fork on; exec keeps it, but for a refusal. */
struct sampler_decision {
	__u64 period; /* ns: of the events whose ticks are taken; or one of the two below */
	__u64 weight; /* ns: what a tick stands for, where only some of them are kept */
	__u32 keep;   /* so many of 2^32, by chance; 0: all */
	__u32 pad;
};

#define SAMPLER_ANY 0ull
#define SAMPLER_NONE (~0ull)

/*
 * A frame as it is sent: a kernel address if it is among the kernel's; else, from bit 44 on, the
 * file's number, and below the offset in it. Of memory without a file the upper 16 bits are set,
 * and the lower ones of the number are those of the address from bit 43 on. A frame that a language
 * unwinder's step pushed is three words: SAMPLER_PUSHED as file and the unwinder as offset, then
 * what it pushed.
 */
#define SAMPLER_FILE_SHIFT 44
#define SAMPLER_OFFSET_BITS 43
#define SAMPLER_GUESSED (1ull << SAMPLER_OFFSET_BITS)
#define SAMPLER_ANONYMOUS 0xffff0u /* such a number, and those above it */
#define SAMPLER_PUSHED (SAMPLER_ANONYMOUS - 1)
#define SAMPLER_MAX_FILE (SAMPLER_PUSHED - 1)
#define SAMPLER_MAX_OFFSET ((1ull << SAMPLER_OFFSET_BITS) - 1)

#define SAMPLER_MAX_WORDS 3072u /* of frames */

/*
 * One tick: a whole stack, or, without frames, one that is left to user space. Or what a language
 * unwinder emitted about frames that follow: then version is its number and nuser counts words of 8
 * bytes, in which come, one behind the other, key (u64), kind, length in bytes (u32 each), and the
 * bytes, filled up to words.
 */
struct sampler_record {
	__u64 process; /* id of the element that its mappings came from */
	__u64 period;  /* ns of CPU time that it stands for */
	__u64 runtime; /* ns of CPU time that the scheduler has counted for the thread, maybe some
			  ms ago */
	__u32 pid, tid;
	__u32 version; /* of that element; if left: who cut it, see SAMPLER_CUT_SHIFT */
	__u32 left;    /* enum sampler_count: why; 0: it is not; SAMPLER_EMISSIONS */
	__u8 nkernel;  /* words of frames */
	__u8 base;     /* it is a tick of the CPU's own event */
	__u16 claimed; /* frames without a file that the language unwinder was asked about */
	__u32 nuser;   /* words of frames */
	char comm[16];
	__u64 frames[SAMPLER_MAX_WORDS]; /* kernel's, then user's, leaf first; only those are sent
					  */
};

#define SAMPLER_RECORD_HEAD 64u
#define SAMPLER_EMISSIONS 256u
#define SAMPLER_NO_COPY                                                          \
	512u /* with why it is left: nobody walks it, there were too many copies \
	      */

#define SAMPLER_MAX_COPY 61440u /* of a stack; a record of perf's has less than 64 KiB */
#define SAMPLER_COPY_PAGES 17u
#define SAMPLER_COPY_HOLES                                                     \
	7u /* so many pages in a row that are not there, and the stack is over \
	    */

/* A tick whose stack is left to user space, with what that takes. */
struct sampler_copy {
	__u8 head[SAMPLER_RECORD_HEAD]; /* struct sampler_record's; nuser: SAMPLER_COPIED */
	__u64 regs[17];                 /* x86-64, by DWARF number */
	/* Bit i: page i, from the one on that sp is in, is not there. Of the others the bytes stand
	 * one behind the other. */
	__u64 holes;
	__u64 from;         /* where the next page is */
	__u32 bytes, limit; /* of the stack; as many as were asked for */
	__u32 nkernel;
	__u32 missing;                    /* pages in a row */
	__u64 kernel[SAMPLER_MAX_KERNEL]; /* as bpf_get_stack() has them */
	__u8 stack[SAMPLER_MAX_COPY + 4096];
};

#define SAMPLER_COPY_HEAD (SAMPLER_RECORD_HEAD + 17 * 8 + 32 + SAMPLER_MAX_KERNEL * 8)
#define SAMPLER_COPIED (~0u)

/* How the core wants it: the only element of sampler_settings, which it writes in place. */
struct sampler_settings {
	__u64 base; /* ns: period of the events that each CPU has of its own; 0: there are none */
	__u64 unknown; /* what is taken of processes that are not decided about: as a decision's */
	__u32 stretch; /* another number whenever those events begin anew */
	__u32 copy;    /* bytes of a stack; 0: the events copy them */
	__u32 round;   /* another number each time that user space has read the rings */
	__u32 ration;  /* KiB of copies that it takes from a CPU in a round */
	/* The programs' only word: stacks that were left for want of news of their process; about
	 * so many. */
	__u32 unknown_ticks;
};

/* Who cut a walk that was left: 1 + the language unwinder's number, 0: none; below it the step's
 * own reason, or: */
#define SAMPLER_CUT_SHIFT 16
#define SAMPLER_CUT_REASON 0xffffu
enum sampler_lie {
	SAMPLER_NO_ROOM = 0xfffd,   /* for more frames */
	SAMPLER_ENDLESS = 0xfffe,   /* frames without end */
	SAMPLER_BACKWARDS = 0xffff, /* a caller that is not above its callee on the stack */
};

/*
 * The ticks of one CPU's own event, in sampler_grid, where idle time has ticks too: they come at a
 * fixed distance, so what is missing between the first and the last one was not seen. A long gap
 * (the CPU was offline) begins anew.
 */
struct sampler_grid {
	__u64 first, last; /* CLOCK_MONOTONIC ns; 0: none yet */
	__u64 period;      /* ns, in between */
	__u64 before;      /* ticks of earlier stretches */
	__u64 seen;        /* in all */
	__u64 stretch;     /* of struct sampler_settings */
};

/* So long and two periods without a tick: where the thread that runs now has not run all the while,
 * the CPU was idle, and the kernel did not run the program for that, as it does not on some CPUs.
 */
#define SAMPLER_GAP_NS 20000000ull
#define SAMPLER_RUNTIME_NS 10000000ull /* so old may what the scheduler has counted be */

/* Why a stack was left to user space, in sampler_counts: one u64 each, per CPU. */
enum sampler_count {
	SAMPLER_WALKED,
	SAMPLER_UNKNOWN_PROCESS,
	SAMPLER_UNKNOWN_CODE, /* no mapping with a table holds it */
	SAMPLER_NO_REGISTERS,
	SAMPLER_CUT,     /* a step stopped for a reason, or a full interpreter is needed */
	SAMPLER_CHANGED, /* its mappings were rewritten meanwhile, or are about to change */
	SAMPLER_NOT_WANTED,
	SAMPLER_NOT_SENT, /* walked, but there was no room in the ring */
	SAMPLER_IDLE,     /* nobody ran; only where idle time has ticks */
	SAMPLER_COUNTS
};
#endif

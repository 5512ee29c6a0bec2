/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * fusee/unwinder.bpf.h - what the step of an unwinder sees.
 *
 * A step is a C function that is compiled twice from one source: for BPF, where it runs in the
 * kernel at each sample, and natively, where it runs in fusee over a copied stack, in tests over
 * made-up memory and under fuzzers. A step uses only struct fusee_unwind and the functions below:
 * no vmlinux.h, no kernel structs, no BPF helpers, no writable globals, no libc.
 *
 *	static int my_step(struct fusee_unwind *u) { ... return FUSEE_NEXT; }
 *	FUSEE_NATIVE_STEP(my, my_step);
 *
 * The step of a native unwinder moves from a machine frame to its caller: it changes pc, sp, fp,
 * valid_regs and regs, and returns FUSEE_NEXT.
 *
 * The step of a language unwinder (FUSEE_LANGUAGE_STEP) is called where pc is in code that the
 * unwinder has claimed. It pushes the frames of the language with fusee_push() and FUSEE_AGAIN, one
 * frame at each call. Then it returns FUSEE_NATIVE, and the native unwinders step from this pc; or
 * it sets pc, sp and fp to the caller's and returns FUSEE_NEXT. With fusee_emit() it sends
 * ops->record() what user space needs to name the frames.
 *
 * Rules of the BPF verifier: no signed division, no unbounded loop, less than 300 bytes of stack in
 * a function. Parts of a step (FUSEE_PART) may call each other four deep: the kernel allows eight
 * nested calls, of which the core uses two, the step one, and one is kept in reserve.
 *
 * Every read can fail: in the kernel because the page is not in memory, natively because the copy
 * ends. After a failed read a step ends the stack with a reason. It never takes a failed read for
 * 0.
 *
 * Thread: the state belongs to the caller of the step; nothing here may be called outside of a
 * step.
 */
#ifndef FUSEE_UNWINDER_BPF_H
#define FUSEE_UNWINDER_BPF_H

#ifdef __bpf__
typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
#else
#include <linux/types.h>
#endif

/* How the half in the kernel is laid out: the version of <fusee/plugin.h> that began it, major << 8
 * | minor. The core links the steps and samplers that have the same number. */
#define FUSEE_BPF_ABI 0x0005

#define FUSEE_MAX_REGS 33

/* x86-64 DWARF register numbers (System V psABI, figure 3.36). */
enum fusee_x86_64_reg {
	FUSEE_X86_RAX,
	FUSEE_X86_RDX,
	FUSEE_X86_RCX,
	FUSEE_X86_RBX,
	FUSEE_X86_RSI,
	FUSEE_X86_RDI,
	FUSEE_X86_RBP,
	FUSEE_X86_RSP,
	FUSEE_X86_R8,
	FUSEE_X86_R9,
	FUSEE_X86_R10,
	FUSEE_X86_R11,
	FUSEE_X86_R12,
	FUSEE_X86_R13,
	FUSEE_X86_R14,
	FUSEE_X86_R15,
	FUSEE_X86_RIP,
};

/* What a step returns. */
enum fusee_next {
	FUSEE_STOP,       /* the stack ends: complete if u->error is 0, else truncated */
	FUSEE_NEXT,       /* pc, sp and fp are the caller's now */
	FUSEE_PASS,       /* native: this unwinder knows nothing of pc; the next unwinder steps */
	FUSEE_NATIVE,     /* language: the frames are pushed; native unwinders step from here */
	FUSEE_AGAIN,      /* the core calls the step again at the same place */
	FUSEE_NATIVE_TOO, /* language: as FUSEE_NATIVE; the native frame is shown too, as caller */
	FUSEE_NEXT_OMIT,  /* language: as FUSEE_NEXT; the native frame is not shown */
};

enum fusee_unwind_flags {
	/* pc is the interrupted instruction: of the innermost frame, or of the frame that a signal
	 * interrupted. Without it pc is a return address: look up its rule at pc - 1. */
	FUSEE_PC_EXACT = 1,
	/* No step was made yet: pc is where the thread was interrupted. Without FUSEE_PC_EXACT pc
	 * is the instruction after a system call's. */
	FUSEE_FIRST = 2,
	/* fp is not known in this frame. */
	FUSEE_FP_LOST = 4,
	/* The next flags are set by a step, and cleared by the core. */
	FUSEE_GUESSED = 8,        /* the caller that this step has found is a guess */
	FUSEE_SIGNAL = 16,        /* this step went from a signal frame to the interrupted code */
	FUSEE_INEXPRESSIBLE = 32, /* with FUSEE_STOP: a complete CFI interpreter could go on */
	/* Requests of the core to native unwinders. FOLLOW: restore the registers of
	 * FUSEE_CALLEE_SAVED too. CFA_ONLY, which comes with FOLLOW: set u->cfa to the CFA of this
	 * frame, change nothing else and return FUSEE_STOP. */
	FUSEE_FOLLOW = 64,
	FUSEE_CFA_ONLY = 128,
	/* sp is only what a frame pointer implies: a caller in memory without a file may have put
	 * arguments there, which its callee has popped. Set by a step, cleared by the next step. */
	FUSEE_SP_UNSURE = 256,
	/* 0.6: set by a language's step, cleared by the core: what this frame has called is a part
	 * of what the pushed frames represent, so the machine frame that was shown last is not
	 * shown. In the outer part of a very deep stack it is shown all the same. */
	FUSEE_OMIT_CALLEE = 512,
};

/* The registers that a function keeps for its caller, in the bits of valid_regs; fp is a field of
 * its own. */
#define FUSEE_CALLEE_SAVED                                                                       \
	(1u << FUSEE_X86_RBX | 1u << FUSEE_X86_R12 | 1u << FUSEE_X86_R13 | 1u << FUSEE_X86_R14 | \
	 1u << FUSEE_X86_R15)

enum fusee_origin { FUSEE_CPU = 1, FUSEE_OFF_CPU, FUSEE_ALLOC, FUSEE_EVENT };

/* The state of a walk over one stack, without anything that is private to the core. FROZEN: in a
 * native walk the step's other state is right behind it, so what a later version adds is read by
 * functions. */
struct fusee_unwind {
	__u32 origin, pid, tid;
	__u32 machine;        /* ELF e_machine: 62 x86-64, 183 aarch64 */
	__u32 error;          /* of FUSEE_STOP: index into ops->reasons from 1; 0: complete */
	__u32 flags;          /* enum fusee_unwind_flags */
	__u64 process;        /* number of the process, which no other process ever has */
	__u64 time_ns;        /* CLOCK_MONOTONIC of the sample; for language unwinders */
	__u64 value;          /* weight of the sample, in ns; for language unwinders */
	__u64 pc, sp, fp, lr; /* fp: rbp or x29; lr: aarch64, innermost frame only */
	/* The thread pointer: x86-64 the base of fs, which pthread_self() is. 0: not known, as
	 * always over a stack copy. */
	__u64 tls;
	__u64 file;           /* that the mapping of pc maps; 0: anonymous memory */
	__u64 offset;         /* ELF virtual address of pc in that file */
	__u64 bias;           /* pc = offset + bias */
	__u64 map_lo, map_hi; /* the mapping of pc, or a part of it: [map_lo, map_hi) */
	/* Bit n: regs[n] is the value in this frame. In the innermost frame, and in a frame that a
	 * signal interrupted, all registers are known. In other frames the callee-saved registers
	 * that are known, if the process has code with FUSEE_CLAIM_REGISTERS, else none. Otherwise
	 * regs[n] is the value in an inner frame, which is this frame's too if the register is
	 * callee-saved and no function has saved it. See fusee_register(). */
	__u64 valid_regs;
	__u64 regs[FUSEE_MAX_REGS]; /* by DWARF number; pc, sp and fp are the fields above */
	/* This unwinder's table of `file`, in words; 0 words: none. In memory without a file, for
	 * language unwinders: the table of the first file of the process that has one. */
	__u64 slab, slab_words;
	__u64 slab_id; /* number of this table's content; 0: do not cache its words */
	/* For language unwinders. */
	__u64 first_sp;            /* sp of the innermost frame; memory below it is no frame's */
	__u64 claim_lo, claim_arg; /* claim_lo: runtime address of the claim's first byte */
	__u64 words_at, words; /* of the process: fusee_process_word() reads them; 0 words: none */
	__u64 scratch[8];      /* for the step: zero at first, kept until the walk ends */
	__u64 pushed[4];       /* the arguments of fusee_push4() */
	__u32 npushed;         /* 1: a frame is pushed; the core stores it and sets 0 */
	__u32 pushed_words;    /* of that frame: 2 or 4 */
	__u32 push_flags;      /* enum fusee_push_flags */
	__u32 stored;          /* frames of languages that the core has stored of this stack */
	/* In a claim with FUSEE_CLAIM_REGISTERS: the frame's CFA, which is sp of its caller, by the
	 * tables of native unwinders. 0: not known. */
	__u64 cfa;
	/* Set by a language's step that returns FUSEE_NEXT: bit n: regs[n] is the caller's value.
	 * See fusee_set_caller_register(). */
	__u64 caller_regs;
	/* Set by fusee_table*() in the kernel, cleared by the core: a page of a table that the step
	 * read is not loaded, so what it answers is ignored. */
	__u64 absent;
};

#define FUSEE_EMIT_BYTES 2048u /* of one emission at most */

#ifdef __bpf__
#define FUSEE_FN static __attribute__((always_inline)) inline
#else
#define FUSEE_FN static inline
#endif

/*
 * Tables by page. A page of a table has FUSEE_PAGE_WORDS words. In the kernel it is read from a
 * frame, into which the core fills it. In place of the table's words, the slabs have an entry for
 * each of its pages: the number of a frame and that of a filling of it, or 0. Each filling of a
 * frame has its own number, which the state of the frame has while these words are in it.
 * core/bpf/pages.c changes it before it changes a word, and writes the entry last. So a reader that
 * finds the entry's number in the state after it has read words has read words of this page.
 */
#define FUSEE_PAGE_SHIFT 10
#define FUSEE_PAGE_WORDS (1u << FUSEE_PAGE_SHIFT)
#define FUSEE_FRAME_BITS 13 /* of an entry: the frame; the upper bits: the filling, from 1 */

struct fusee_frame_state {
	__u32 filling;
	__u32 used; /* 1: it was read since the core set 0 */
};

/* ---- the target's memory ---- */

/* Copies len bytes at addr of the target. 0, or -1: not all of them can be read. */
FUSEE_FN int fusee_read(struct fusee_unwind *u, void *dst, __u32 len, __u64 addr);
/* 1.0: the same of n words of the thread's stack. n is a constant of FUSEE_STACK_WORDS at most, and
 * addr is aligned. This takes less time than a word at a time. */
#define FUSEE_STACK_WORDS 16
FUSEE_FN int fusee_read_stack(struct fusee_unwind *u, __u64 *dst, __u32 n, __u64 addr);
/* Copies a terminated string, at most cap bytes; the last byte of dst is then 0. Returns the bytes
 * with the 0, or -1: the string cannot be read. */
FUSEE_FN int fusee_read_str(struct fusee_unwind *u, char *dst, __u32 cap, __u64 addr);

/* ---- the table that inspect() has made of u->file ---- */

/* For language unwinders, and for native unwinders without FUSEE_UNWINDER_PAGED. Copies word i. 0,
 * or -1: the table is shorter. */
FUSEE_FN int fusee_slab32(struct fusee_unwind *u, __u64 i, __u32 *word);

struct fusee_words; /* consecutive words of a table */
/*
 * Finds words [i, i + n), so that fusee_word() reads them without another lookup. 0, or -1: the
 * table is shorter, or the kernel holds the words in two pieces, which can happen to any table:
 * read them with fusee_slab32().
 */
FUSEE_FN int fusee_slab_words(struct fusee_unwind *u, __u64 i, __u32 n, struct fusee_words *words);
/* Word k of them, 0 <= k < n. In the kernel a larger k reads a word of some table; natively it is
 * not allowed. */
FUSEE_FN __u32 fusee_word(const struct fusee_words *words, __u32 k);
/* Copies the first n of them; n is a constant, the same that fusee_slab_words() was given. 0 or -1.
 * `to` is aligned to 8 bytes. In the kernel this takes less time than a word at a time. */
FUSEE_FN int fusee_copy_words(const struct fusee_words *words, __u32 n, void *to);

/*
 * The same for native unwinders with FUSEE_UNWINDER_PAGED. Their tables can be large, so the kernel
 * loads them by page, on demand. A read of a page that is not loaded fails; then the walk ends
 * after this step, whatever the step answers, and user space loads the page and walks the stack. A
 * step must not keep what it concludes from a read that failed.
 */
FUSEE_FN int fusee_table32(struct fusee_unwind *u, __u64 i, __u32 *word);

struct fusee_page_words; /* consecutive words of a table */
/* As fusee_slab_words(). The words may be replaced while they are read, so what was read of them
 * counts only if fusee_table_holds() is 0 afterwards. Before that call nothing else is read of the
 * table. */
FUSEE_FN int fusee_table_words(struct fusee_unwind *u, __u64 i, __u32 n,
			       struct fusee_page_words *words);
/* As fusee_word(). */
FUSEE_FN __u32 fusee_table_word(const struct fusee_page_words *words, __u32 k);
/* 0: the words that were read are the table's; -1: the page was replaced meanwhile. */
FUSEE_FN int fusee_table_holds(struct fusee_unwind *u, const struct fusee_page_words *words);

/* Copies word i of those that host->process_slab() has set for this process. 0, or -1: there are
 * fewer. For language unwinders. */
FUSEE_FN int fusee_process_word(struct fusee_unwind *u, __u64 i, __u32 *word);

/* ---- registers ---- */

/* Copies a register of this frame: 0 to 15 and FUSEE_X86_RIP. 0, or -1: it is not known here. */
FUSEE_FN int fusee_register(const struct fusee_unwind *u, __u32 reg, __u64 *value)
{
	if (reg == FUSEE_X86_RSP)
		*value = u->sp;
	else if (reg == FUSEE_X86_RIP)
		*value = u->pc;
	else if (reg == FUSEE_X86_RBP && !(u->flags & FUSEE_FP_LOST))
		*value = u->fp;
	else if (reg < 16 && reg != FUSEE_X86_RBP && u->valid_regs >> reg & 1) {
		/* Linux 5.10 does not know the bound that the compiler has proved: mask it again */
		__asm__ volatile("" : "+r"(reg));
		*value = u->regs[reg & 15];
	} else {
		return -1;
	}
	return 0;
}

/* For a step that returns FUSEE_NEXT: sets a register of FUSEE_CALLEE_SAVED of the caller.
 * Registers that are not set are not known there. */
FUSEE_FN void fusee_set_caller_register(struct fusee_unwind *u, __u32 reg, __u64 value)
{
	if (!(reg < 16 && FUSEE_CALLEE_SAVED >> reg & 1))
		return;
	__asm__ volatile("" : "+r"(reg));
	u->regs[reg & 15] = value;
	u->caller_regs |= 1ull << (reg & 15);
}

/* ---- frames of a language ---- */

/* The first three are as enum fusee_frame_flags of <fusee/profile.h>. */
enum fusee_push_flags {
	FUSEE_PUSH_ASYNC = 1,
	FUSEE_PUSH_BUILTIN = 2,
	FUSEE_PUSH_HIDDEN = 4,
	/* 0.7: no frame, but the thread's name at this moment: the function's name that symbolize()
	 * gives it becomes the sample's label `thread`. Push it once in a walk, at any place. */
	FUSEE_PUSH_THREAD = 8,
};

/* Pushes a frame: two words that ops->symbolize() receives. One frame at each call of the step. 0,
 * or -1: this call has pushed a frame already. */
FUSEE_FN int fusee_push(struct fusee_unwind *u, __u64 v0, __u64 v1);
/* The same with four words and enum fusee_push_flags. */
FUSEE_FN int fusee_push4(struct fusee_unwind *u, __u64 v0, __u64 v1, __u64 v2, __u64 v3,
			 __u32 flags);

/*
 * Emissions: bytes for ops->record(). The kernel keeps which keys were emitted for a process, so
 * each is sent about once. An address alone is a bad key, since memory is reused: mix in what
 * distinguishes its contents.
 */

/*
 * A key of several values: begin with any number and mix one value after the other into it. Equal
 * values do not cancel each other, and their order counts.
 */
FUSEE_FN __u64 fusee_mix(__u64 key, __u64 value)
{
	key = (key ^ value) * 0x9e3779b97f4a7c15ull;
	return key ^ key >> 32;
}

/* 1: the key was emitted for this process already. */
FUSEE_FN int fusee_emitted(struct fusee_unwind *u, __u32 kind, __u64 key);
/* The buffer of the next emission: FUSEE_EMIT_BYTES, and as many after them for the step's own use,
 * with arbitrary content. NULL: there is none. */
FUSEE_FN void *fusee_buffer(struct fusee_unwind *u);
/* Emits the first len bytes of the buffer. 0, or -1: this sample has no room; the step emits them
 * with a later sample. Emit more than FUSEE_EMIT_BYTES in parts, each of its own kind: check
 * fusee_emitted() of each, and emit the part that a frame's name needs last. */
FUSEE_FN int fusee_emit(struct fusee_unwind *u, __u32 kind, __u64 key, __u32 len);

/*
 * Values that a step remembers from a sample to later samples of this process on this CPU, so that
 * it need not read the target again. Any value may be forgotten at any time. All are forgotten when
 * emissions could not be sent, so a value may also say that a key was emitted. A key must contain
 * all that could make the value wrong later. A forked child is another process. Over a stack copy
 * nothing is remembered.
 */
/* 0: nothing is remembered of this key. */
FUSEE_FN __u64 fusee_recall(struct fusee_unwind *u, __u64 key);
FUSEE_FN void fusee_remember(struct fusee_unwind *u, __u64 key, __u64 value);

/*
 * 1.0: the same of several words, which are read and written in place: a note. It is found faster,
 * there are more of them, and they are apart from the values above. FROZEN.
 */
#define FUSEE_NOTE_WORDS 6
struct fusee_note {
	__u64 key, of; /* the core's */
	__u64 word[FUSEE_NOTE_WORDS];
};
/* The note of this key. NULL: there is none. */
FUSEE_FN struct fusee_note *fusee_find_note(struct fusee_unwind *u, __u64 key);
/* Makes a note of this key, with arbitrary words, in place of another. NULL: there can be none. */
FUSEE_FN struct fusee_note *fusee_make_note(struct fusee_unwind *u, __u64 key);

/* ---- several frames at a call ---- */

/*
 * For a language's step that has pushed a frame: stores it, and goes on as if the step had returned
 * `how`, FUSEE_AGAIN or FUSEE_NEXT, and had been called again. 1: done: the step may push the next
 * frame. 0: nothing was done, as always over a stack copy, and where a caller is not in the claim
 * of its callee: return `how`.
 */
FUSEE_FN int fusee_go_on(struct fusee_unwind *u, enum fusee_next how);

/* ---- the step and its parts ---- */

/*
 * FUSEE_NATIVE_STEP(name, step), FUSEE_LANGUAGE_STEP(name, step): makes the static function `step`
 * the unwinder's step. Natively it becomes `int fusee_step_NAME(struct fusee_unwind *)`, for
 * ops->native_step.
 *
 * FUSEE_PART(name, part): makes the static function `int part(struct fusee_unwind *u, __u32 arg)` a
 * part of the step, called as FUSEE_CALL(name, u, arg). The verifier checks a part once, and not at
 * each call; and rare code stays out of the cache lines of frequent code. Begin the name with
 * fusee_ and the plugin's name.
 */

#ifdef __bpf__
#include <fusee/unwinder_kernel.h>
#else
#include <fusee/unwinder_native.h>
#endif

/* Ends the stack: `return fusee_stop(u, MY_REASON);`. reason: index into ops->reasons from 1; 0:
 * the stack is complete. */
FUSEE_FN int fusee_stop(struct fusee_unwind *u, __u32 reason)
{
	u->error = reason;
	return FUSEE_STOP;
}

FUSEE_FN int fusee_push(struct fusee_unwind *u, __u64 v0, __u64 v1)
{
	if (u->npushed)
		return -1;
	u->pushed[0] = v0;
	u->pushed[1] = v1;
	u->push_flags = 0;
	u->pushed_words = 2;
	u->npushed = 1;
	return 0;
}

FUSEE_FN int fusee_push4(struct fusee_unwind *u, __u64 v0, __u64 v1, __u64 v2, __u64 v3,
			 __u32 flags)
{
	if (fusee_push(u, v0, v1))
		return -1;
	u->pushed[2] = v2;
	u->pushed[3] = v3;
	u->push_flags = flags;
	u->pushed_words = 4;
	return 0;
}
#endif

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Frames of a walk: their kinds, and the words that the BPF sampler sends for them. Shared by the
 * BPF programs and user space. */
#ifndef BPF_FRAME_H
#define BPF_FRAME_H

#ifndef __bpf__
#include <linux/types.h>
#endif

enum frame_kind {
	FRAME_FILE,      /* code of a file */
	FRAME_ANONYMOUS, /* code in memory without a file */
	FRAME_PUSHED,    /* pushed by a language unwinder's step */
	FRAME_KERNEL,    /* kernel code */
	FRAME_OMITTED,   /* frames that are not kept; user space only */
};

/*
 * A frame is one word; a pushed frame is three words, or five, of which the last two or four are
 * the unwinder's. A pushed frame that is in the record already, as in recursions, is one word:
 * FRAME_AGAIN.
 *
 *	bits 62-63  enum frame_kind; a kernel address has both bits set already
 *	bit  61     FRAME_GUESSED, not for kernel frames; pushed: FRAME_AGAIN
 *	bits 0-60   file: number of the file (bits 41-60) and offset in it (bits 0-40);
 *	            anonymous: address, FRAME_CLAIMED and FRAME_EXACT; pushed: number of the
 *	            unwinder (bits 0-7), its flags (bits 8-15), FRAME_FOUR_WORDS; FRAME_AGAIN: index
 *	            of the word with which the equal frame begins
 */
#define FRAME_KIND_SHIFT 62
#define FRAME_GUESSED (1ull << 61)
#define FRAME_AGAIN (1ull << 61)
#define FRAME_CLAIMED (1ull << 60) /* a language unwinder claims the memory */
#define FRAME_EXACT (1ull << 59)   /* the address was interrupted, it is in no call */
#define FRAME_FILE_SHIFT 41
#define FRAME_MAX_FILE 0xfffffu
#define FRAME_MAX_OFFSET ((1ull << FRAME_FILE_SHIFT) - 1)
#define FRAME_MAX_ADDRESS (FRAME_GUESSED - 1) /* of a file's number and offset */
#define FRAME_ANONYMOUS_MAX (FRAME_EXACT - 1)
#define FRAME_PUSHED_WORDS 3u
#define FRAME_FOUR_WORDS (1ull << 16) /* it has two more words */
#define FRAME_MOST_WORDS 5u
#define FRAME_UNWINDER 0xffu
#define FRAME_FLAGS_SHIFT 8

/* A file's number of 20 bits fits below FRAME_GUESSED. */
_Static_assert(((__u64)FRAME_MAX_FILE << FRAME_FILE_SHIFT | FRAME_MAX_OFFSET) == FRAME_MAX_ADDRESS,
	       "file and offset fill bits 0-60");

/* Which language unwinder stopped a walk in the kernel, and why. */
struct walk_stop {
	__u16 unwinder; /* 1 + its number in the set of plugins; 0: no language unwinder */
	__u16 reason;   /* the step's own reason, or enum walk_fault */
};

/* Where a uretprobe has replaced a return address, and what that was. */
struct walk_return {
	__u64 at, pc;
};

#define WALK_RETURNS 64u /* of a thread, at most: MAX_URETPROBE_DEPTH */

/* Reasons that the sampler gives for a step that breaks its contract. */
enum walk_fault {
	WALK_FAULT_ENDLESS = 0xfffe,   /* calls without end that push nothing */
	WALK_FAULT_BACKWARDS = 0xffff, /* a caller that is not above its callee on the stack */
};
#endif

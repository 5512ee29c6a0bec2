/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the BPF walk of the tests hands to tool_bpf, and what it is handed. */
#ifndef TOOLS_WALK_H
#define TOOLS_WALK_H

#define WALK_MAX_MAPPINGS 64
#define WALK_MAX_FRAMES 1024
#define WALK_PAGE 4096
#define WALK_PAGES 16

/* One executable mapping; its table has slab_words words, the entries of whose pages begin at word
 * `slab` of fusee_slabs: page i of all tables is in frame i, its entry is word 1 + i. */
struct walk_mapping {
	__u64 lo, hi, bias, slab, slab_words, slab_id;
};

struct walk_mappings {
	__u32 n, follow; /* follow: 1: registers are followed */
	struct walk_mapping mapping[WALK_MAX_MAPPINGS];
};

enum walk_unwinder { WALK_NOBODY, WALK_DWARF, WALK_FRAMEPOINTER };

/* A frame before its step. */
struct walk_frame {
	__u64 pc, sp, fp;
	__u32 flags, valid_regs;
	__u64 cfa, regs[5]; /* if registers are followed: rbx, r12 .. r15 */
};

/* Where the walk ended: which unwinder's step stopped, with which u->error. WALK_NOBODY: no mapping
 * holds pc (error 0), all passed (error 1), too deep (error 2). */
struct walk_end {
	__u32 unwinder, error;
};

/* One sample: the registers, the stack as it was, and the frames that the kernel found. */
struct walk_record {
	__u64 regs[17]; /* by DWARF number */
	__u32 n, pages; /* frames; pages of the stack that could be copied */
	struct walk_end end;
	struct walk_frame frames[WALK_MAX_FRAMES];
	unsigned char stack[WALK_PAGES * WALK_PAGE]; /* pages, from the page that holds rsp;
						      * the first is there from 128 bytes
						      * below rsp on */
};

/* How long the timed programs took, each of one sample; of those that `time_walk` took, the sum of
 * their frames and how many stacks came for the first time. */
#define WALK_TIMES (1u << 16)
struct walk_times {
	__u64 n, frames, first;
	__u32 ns[WALK_TIMES];
};
#endif

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the BPF program of steps.bpf.c and its loader, tool_steps.c, tell each other. */
#ifndef TOOLS_STEPS_H
#define TOOLS_STEPS_H

#include <fusee/unwinder.bpf.h>

#define STEPS_MAPPINGS 32
#define STEPS_DEPTH 1024
/* Results beside enum fusee_next: pc is in no mapping; a page of the table was absent. */
#define STEPS_UNMAPPED 100
#define STEPS_ABSENT 101

struct steps_mapping {
	__u64 lo, hi, bias;
	__u64 slab, slab_words, slab_id;
	__u64 fold; /* not 0: offset is pc % fold from bias on, so that any pc leads into the table
		     */
};

struct steps_input {
	__u64 pc, sp, fp, valid_regs;
	__u64 regs[16];
	__u32 flags, nmappings;
	struct steps_mapping mappings[STEPS_MAPPINGS];
};

struct steps_frame { /* after a step */
	__u64 pc, sp, fp, valid_regs;
	__u32 flags, by;
};

struct steps_output {
	__u32 n, result, error, by; /* of the last step; by: 1 dwarf, 2 framepointer */
	struct steps_frame frames[STEPS_DEPTH];
};

/* The step of both builds: which table governs u->pc. 0, -1: none. */
FUSEE_FN int steps_locate(struct fusee_unwind *u, const struct steps_input *in)
{
	__u64 at = u->flags & FUSEE_PC_EXACT ? u->pc : u->pc - 1;

	for (int i = 0; i < STEPS_MAPPINGS; i++) {
		const struct steps_mapping *m = &in->mappings[i];

		if ((__u32)i >= in->nmappings)
			break;
		if (at < m->lo || at >= m->hi)
			continue;
		u->map_lo = m->lo;
		u->map_hi = m->hi;
		u->bias = m->bias;
		u->offset = m->fold ? m->bias + u->pc % m->fold : u->pc - m->bias;
		u->slab = m->slab;
		u->slab_words = m->slab_words;
		u->slab_id = m->slab_id;
		return 0;
	}
	return -1;
}

/* What a step has answered. Not 0: this was the last step. */
FUSEE_FN int steps_note(struct fusee_unwind *u, struct steps_output *out, __u32 i, __u32 by, int r)
{
	out->result = (__u32)r;
	out->error = u->error;
	out->by = by;
	out->n = i;
	if (r != FUSEE_NEXT || i >= STEPS_DEPTH)
		return 1;
	out->frames[i & (STEPS_DEPTH - 1)] = (struct steps_frame){
		.pc = u->pc,
		.sp = u->sp,
		.fp = u->fp,
		.valid_regs = u->valid_regs,
		.flags = u->flags,
		.by = by,
	};
	out->n = i + 1;
	u->flags &= ~(__u32)(FUSEE_GUESSED | FUSEE_SIGNAL | FUSEE_FIRST | FUSEE_INEXPRESSIBLE);
	return 0;
}
#endif

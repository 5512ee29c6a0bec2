/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The sample at hand, and how its record leaves: what the parts of the sampler share. */
#ifndef BPF_SAMPLE_H
#define BPF_SAMPLE_H

#include <fusee/unwinder.bpf.h>

#include "kernel.h"
#include "records.h"

/* Each CPU's event that carries records into its ring. */
struct {
	__uint(type, 4 /* PERF_EVENT_ARRAY */);
	__uint(key_size, 4);
	__uint(value_size, 4);
} sampler_output SEC(".maps");

/* Of the sample at hand. */
struct scratch {
	struct user_regs regs;
	__u32 element; /* of sampler_processes, 0 none */
	__u32 at;      /* the next frame's place in the record */
	__u32 guessed;
	__u32 languages; /* does this program step for a language unwinder? */
	__u32 slot;      /* which */
	__u32 pushed;    /* it has pushed frames for this place */
	__u32 cut;       /* it has stopped the walk: see SAMPLER_CUT_SHIFT */
	__u32 round;     /* of struct sampler_settings, that `copied` is of */
	__u32 copied;    /* bytes */
	__u32 pad;
	struct sampler_record record;
};

struct {
	__uint(type, 6 /* PERCPU_ARRAY */);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} sampler_scratch SEC(".maps");

FUSEE_FN struct scratch *scratch(void)
{
	__u32 zero = 0;

	return fusee_bpf_map_lookup_elem(&sampler_scratch, &zero);
}

struct {
	__uint(type, 6 /* PERCPU_ARRAY */);
	__uint(max_entries, SAMPLER_COUNTS);
	__type(key, __u32);
	__type(value, __u64);
} sampler_counts SEC(".maps");

FUSEE_FN void count(__u32 what)
{
	__u64 *n = fusee_bpf_map_lookup_elem(&sampler_counts, &what);

	if (n)
		++*n;
}

/* What came of handing a stack to the ring: 0, also where there was no room, which is counted; -1:
 * it can't be sent. */
FUSEE_FN int sent(long r)
{
	if (r == -28 /* -ENOSPC */) {
		count(SAMPLER_NOT_SENT);
		return 0;
	}
	return r ? -1 : 0;
}

/* How a step, or a whole walk, ended. */
enum walk_end { AGAIN, WHOLE, LEFT_CODE, LEFT_CUT, NATIVE };

FUSEE_FN void give_table(struct fusee_unwind *u, const struct slab_range *t)
{
	u->slab = t->at;
	u->slab_words = t->words;
	u->slab_id = t->id;
}

/* Puts this frame into the record. 0; -1: no room. */
FUSEE_FN int push(struct scratch *s, const struct sampler_mapping *m, __u64 at)
{
	__u64 offset, number;

	number = m->file ? m->file : SAMPLER_ANONYMOUS | at >> SAMPLER_OFFSET_BITS;
	offset = m->file ? at - m->shift : at & SAMPLER_MAX_OFFSET;
	if (offset > SAMPLER_MAX_OFFSET || s->at >= SAMPLER_MAX_WORDS)
		return -1;
	s->record.frames[s->at] = number << SAMPLER_FILE_SHIFT | offset |
				  (s->guessed ? SAMPLER_GUESSED : 0);
	s->at++;
	s->record.claimed += m->claim && !m->file;
	return 0;
}
#endif

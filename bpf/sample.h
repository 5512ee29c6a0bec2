/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The sample in progress on a CPU, its counts, and how its records are sent. */
#ifndef BPF_SAMPLE_H
#define BPF_SAMPLE_H

#include <fusee/unwinder.bpf.h>

#include "kernel.h"
#include "maps.h"
#include "records.h"

/* Each CPU's event that carries records into its ring. */
struct {
	__uint(type, 4 /* PERF_EVENT_ARRAY */);
	__uint(key_size, 4);
	__uint(value_size, 4);
} sampler_output SEC(".maps");

#define SCRATCH_EQUAL 32u

/* How far the walk of a deep stack is. */
struct deep {
	struct record_outer outer; /* frames 0: all frames are inner frames yet */
	__u32 rounds;              /* of the deeper part */
	__u64 again;               /* when the next such walk may begin */
};

/* Bytes of stack copies in this round of struct sampler_settings. */
struct copies {
	__u32 round, bytes;
};

/* Where a language steps: its address, and sp before that step. machine: scratch.at when the
 * machine's last frame was appended, 0: none was. */
struct claimed {
	__u64 at, sp;
	__u32 machine;
	__u32 pushed; /* 1: the step has pushed frames for this pc */
};

/* The kernel's address of what replaced.h looks at next, or 0; what it has found; and to where the
 * first frame has returned, of a probe at returns, or 0. */
struct replaced {
	__u64 next, was, returned;
};

/* The search for a caller in claimed code: continue.h. */
struct search {
	__u64 at;     /* of the words of the stack that are read */
	__u64 pc, sp; /* of the caller that was found; first: where the thread was interrupted */
	__u64 began;  /* CLOCK_MONOTONIC ns */
	__u32 i;      /* index of the next word */
	__u32 rounds; /* of walks from such callers */
	__u32 active; /* 1: such a walk is under way */
	__u32 met;    /* 1: the walk came to claimed code */
	__u32 before; /* index of the first word of the frame at hand */
	__u32 number; /* of the newest record that was sent, 0: none was */
};

/* What is known of the next frame. */
struct next_frame {
	__u32 guessed; /* it was guessed */
	__u32 exact;   /* it was interrupted: pc is in no call */
	/* Where the mapping is that was found last, [u->map_lo, u->map_hi): a chunk, and its index
	 * in that. */
	__u32 chunk, mapping;
};

struct scratch {
	struct user_regs regs;
	__u32 chunk; /* first chunk of the process's mappings */
	__u32 at;    /* index of the next frame's word in the record */
	struct next_frame next;
	__u32 languages; /* 1: this program has a language unwinder's step */
	__u32 slot;      /* number of that unwinder */
	__u32 begun;     /* bit i: the step of language i was called in this walk */
	__u32 version;   /* of the mappings */
	__u32 resumed;   /* 1: another language's program began the walk */
	__u32 has_cfa;   /* u->cfa is of this frame, or 0 as it is not known */
	struct walk_stop stop;
	struct copies copies;
	__u32 idle; /* calls of the step in a row that pushed nothing */
	struct deep deep;
	__u64 began; /* begin_time() of the tick */
	__u64 as_of; /* of the mappings: struct map_chunk */
	struct claimed claimed;
	struct replaced replaced;
	struct search search;
	__u16 equal[SCRATCH_EQUAL]; /* by hash: index of a pushed frame, of this or another sample
				     */
	union {
		struct record_tick tick; /* what the others begin with */
		struct record_stack stack;
		struct record_deferred deferred;
		struct record_missed missed;
		struct record_returns returns;
	} record;
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
	__uint(max_entries, TICK_RESULT_COUNT);
	__type(key, __u32);
	__type(value, __u64);
} sampler_counts SEC(".maps");

FUSEE_FN void count(__u32 result)
{
	__u64 *n = fusee_bpf_map_lookup_elem(&sampler_counts, &result);

	if (n)
		++*n;
}

#if defined(SAMPLER_OF_PROBES) || defined(SAMPLER_OF_TRACEPOINTS)
FUSEE_FN void hit_not_sent(void); /* hits.h */
#else
#define hit_not_sent()
#endif

/* Judges what bpf_perf_event_output() returned for a tick's record. 0, also if the ring was full,
 * which is counted; -1: the record can't be sent. */
FUSEE_FN int sent(long r)
{
	if (r == -28 /* -ENOSPC */) {
		count(TICK_RING_FULL);
		hit_not_sent();
		return 0;
	}
	return r ? -1 : 0;
}

/* Sends the scratch's record. */
FUSEE_FN long output(struct sampler_context *c, struct scratch *s, __u16 kind, __u32 size)
{
	s->record.tick.head.kind = kind;
	s->record.tick.head.size = size;
	return bpf_perf_event_output(c, &sampler_output, BPF_F_CURRENT_CPU, &s->record, size);
}

/* How a step, or a walk, ended. */
enum step_end {
	STEP_AGAIN,        /* the next frame is to be stepped */
	STEP_COMPLETE,     /* the stack reached its outermost frame */
	STEP_UNKNOWN_CODE, /* no published mapping holds the frame's address */
	STEP_STOPPED,      /* the step stopped for a reason */
	STEP_FULL,         /* the walk had its steps */
	STEP_CHANGED,      /* other code may be mapped at the frame's address by now */
	STEP_OTHER,        /* another language's program is to go on, that of `slot` */
	STEP_NATIVE,       /* the native unwinders step this frame */
	STEP_CLAIMED,      /* the language unwinder's step is to be called */
	STEP_ABSENT,       /* a page of a table is not loaded */
};

FUSEE_FN void set_table(struct fusee_unwind *u, const struct slab_range *t)
{
	u->slab = t->at;
	u->slab_words = t->words;
	u->slab_id = t->id;
}

#endif

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Calls a labeler's step, and sends what it says of the thread. */
#ifndef BPF_LABELS_H
#define BPF_LABELS_H

#include <fusee/labeler.bpf.h>

#include "chunks.h"
#include "kernel.h"
#include "sample.h"

_Static_assert(RECORD_TEXTS == FUSEE_LABEL_TEXTS && RECORD_TEXT_KEY == FUSEE_LABEL_KEY &&
		       RECORD_TEXT_VALUE == FUSEE_LABEL_VALUE,
	       "record_text");

/* What a labeler says of the sample in progress. */
struct {
	__uint(type, 6 /* PERCPU_ARRAY */);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct record_labels);
} sampler_labels SEC(".maps");

FUSEE_FN struct record_labels *labels(void)
{
	__u32 zero = 0;

	return fusee_bpf_map_lookup_elem(&sampler_labels, &zero);
}

/* The weak defaults know no labels; the labelers of this program override them. */
#define LABEL_STEP(number)                                                        \
	__attribute__((weak, noinline)) int fusee_label_step_##number(__u32 slot) \
	{                                                                         \
		__asm__ volatile("" : "+r"(slot));                                \
		return FUSEE_LABEL_NONE;                                          \
	}
LABEL_STEP(0)
LABEL_STEP(1)
LABEL_STEP(2)
LABEL_STEP(3)

FUSEE_FN int label_step(__u32 labeler)
{
	switch (labeler) {
	case 0:
		return fusee_label_step_0(0);
	case 1:
		return fusee_label_step_1(0);
	case 2:
		return fusee_label_step_2(0);
	case 3:
		return fusee_label_step_3(0);
	default:
		return FUSEE_LABEL_NONE;
	}
}

/* Copies a label of the thread behind those of labels(): as fusee_label_text(). */
__attribute__((noinline)) int fusee_core_label(__u64 key, __u64 key_len, __u64 value,
					       __u64 value_len)
{
	struct record_labels *r = labels();
	struct record_text *t;
	__u32 at, truncated = 0;

	if (!r)
		return -1;
	if (!key_len || !value_len)
		return 0;
	at = r->bytes;
	if (r->n >= FUSEE_LABEL_TEXTS || at > sizeof(r->texts) - RECORD_TEXT_MOST) {
		r->head.size = 1; /* there is more */
		return 0;
	}
	t = (void *)&r->texts[at];
	if (key_len > FUSEE_LABEL_KEY) {
		key_len = FUSEE_LABEL_KEY;
		truncated = 1;
	}
	if (value_len > FUSEE_LABEL_VALUE) {
		value_len = FUSEE_LABEL_VALUE;
		truncated |= 2;
	}
	if (fusee_bpf_probe_read_user(t + 1, key_len, (const void *)key) ||
	    fusee_bpf_probe_read_user((char *)(t + 1) + key_len, value_len, (const void *)value))
		return -1;
	t->key = key_len;
	t->value = value_len;
	t->truncated = truncated;
	t->pad = 0;
	if (truncated)
		r->head.size = 1;
	r->bytes = at + sizeof(*t) + key_len + value_len;
	r->n++;
	return 0;
}

/* What the step says of the thread that was interrupted, in labels(). 1: it has labels, which are
 * to be sent. A global function, so that programs without a labeler have few instructions. */
__attribute__((noinline)) int sampler_label(__u32 chunk)
{
	struct map_chunk *head = chunk_at(chunk);
	struct fusee_unwind *u = fusee_current();
	struct record_labels *r = labels();
	struct scratch *s = scratch();
	int how;

	__asm__ volatile("" : "+r"(chunk));
	if (!u || !s || !r || !head)
		return 0;
	u->words_at = head->label.at;
	u->words = head->label.words;
	u->pushed[0] = u->pushed[1] = u->pushed[2] = 0; /* fusee_label_ids() sets them */
	r->n = r->bytes = 0;                            /* fusee_core_label() adds to them */
	r->head.size = 0;                               /* 1: labels were truncated */
	how = label_step(head->label.labeler);
	u->words = 0;
	fusee_window_reset(); /* it may be in the thread's own variables */
	/* If the list was rewritten meanwhile, the words may not be the labeler's. */
	if (READ_ONCE(head->version) != s->version || head->process != s->record.tick.head.process)
		return 0;
	if (how == FUSEE_LABEL_UNREADABLE)
		count(TICK_LABEL_UNREADABLE);
	if (how == FUSEE_LABEL_INCOMPLETE)
		count(TICK_LABEL_INCOMPLETE);
	if (how == FUSEE_LABEL_MORE || (how == FUSEE_LABEL_GIVEN && r->head.size))
		count(TICK_LABEL_TRUNCATED);
	if (how != FUSEE_LABEL_GIVEN && how != FUSEE_LABEL_MORE)
		return 0;
	if (!(u->pushed[0] | u->pushed[1] | u->pushed[2] | r->n))
		return 0;
	r->head = s->record.tick.head;
	r->head.kind = RECORD_LABELS;
	r->head.size = RECORD_LABELS_HEAD + r->bytes;
	r->trace_id[0] = u->pushed[0];
	r->trace_id[1] = u->pushed[1];
	r->span_id = u->pushed[2];
	return 1;
}

/* Sends what is in labels(); the sample's record is to follow, and says that it does. */
FUSEE_FN void send_labels(struct sampler_context *c, struct scratch *s)
{
	struct record_labels *r = labels();
	__u64 size;

	if (!r)
		return;
	size = r->head.size;
	if (size > sizeof(*r)) /* for the verifier: it never is */
		return;
	if (bpf_perf_event_output(c, &sampler_output, BPF_F_CURRENT_CPU, r, size)) {
		count(TICK_LABEL_LOST);
	} else {
		count(TICK_LABELED);
		s->record.tick.head.flags |= RECORD_LABELED;
	}
}
#endif

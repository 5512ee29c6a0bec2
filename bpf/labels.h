/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Calls the labeler's step, and sends what it says of the thread. */
#ifndef BPF_LABELS_H
#define BPF_LABELS_H

#include <fusee/labeler.bpf.h>

#include "chunks.h"
#include "kernel.h"
#include "sample.h"

/* What the labeler says of the sample in progress. */
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

/* The weak default knows no labels; the labeler of this program overrides it. */
__attribute__((weak, noinline)) int fusee_label_step(__u32 slot)
{
	__asm__ volatile("" : "+r"(slot));
	return FUSEE_LABEL_NONE;
}

/* What the step says of the thread that was interrupted, in labels(). 1: it has ids, which are to
 * be sent. A global function, so that programs without a labeler have few instructions. */
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
	how = fusee_label_step(0);
	u->words = 0;
	fusee_window_reset(); /* it may be in the thread's own variables */
	/* If the list was rewritten meanwhile, the words may not be the labeler's. */
	if (READ_ONCE(head->version) != s->version || head->process != s->record.tick.head.process)
		return 0;
	if (how == FUSEE_LABEL_UNREADABLE)
		count(TICK_LABEL_UNREADABLE);
	if (how == FUSEE_LABEL_INCOMPLETE)
		count(TICK_LABEL_INCOMPLETE);
	if (how != FUSEE_LABEL_GIVEN || !(u->pushed[0] | u->pushed[1] | u->pushed[2]))
		return 0;
	r->head = s->record.tick.head;
	r->head.kind = RECORD_LABELS;
	r->head.size = sizeof(*r);
	r->trace_id[0] = u->pushed[0];
	r->trace_id[1] = u->pushed[1];
	r->span_id = u->pushed[2];
	return 1;
}

/* Sends the ids of labels(); the sample's record is to follow, and says that it does. */
FUSEE_FN void send_labels(struct sampler_context *c, struct scratch *s)
{
	struct record_labels *r = labels();

	if (!r)
		return;
	if (bpf_perf_event_output(c, &sampler_output, BPF_F_CURRENT_CPU, r, sizeof(*r))) {
		count(TICK_LABEL_LOST);
	} else {
		count(TICK_LABELED);
		s->record.tick.head.flags |= RECORD_LABELED;
	}
}
#endif

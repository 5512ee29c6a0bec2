/* SPDX-License-Identifier: Apache-2.0 */
/* Reads records of the BPF sampler (bpf/records.h) out of the ring, where they are not aligned. */
#ifndef EVENTS_BPF_RECORD_H
#define EVENTS_BPF_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "../../../bpf/records.h"
#include "unwind/sample.h"

/* Each kind begins with the head. */
union record {
	struct record_head head;
	struct record_tick tick;   /* all but emissions and labels begin with it */
	struct record_stack stack; /* and a continuation */
	struct record_copy copy;
	struct record_deferred deferred;
	struct record_missed missed;
	struct record_emission emission;
	struct record_returns returns;
	struct record_labels labels;
};

/* Holds the last record that was read. */
struct bpf_record_reader {
	union record record;
	/* The stack of a copy, each page at its offset from the first page. */
	unsigned char stack[(RECORD_COPY_PAGES + 1) * RECORD_PAGE];
};

/* Copies a record out of len bytes of the ring. false: its kind is unknown, or its size is not one
 * of this kind or above len. */
bool bpf_record_read(union record *, const void *from, uint32_t len);
/* Whether the texts of labels fill the record, and are as long as they may be. */
bool bpf_record_has_texts(const struct record_labels *);
/* Whether the record in these bytes is a sample: a stack, a copy or a missed tick. */
bool bpf_record_is_sample(const void *from, uint32_t len);
/* Whether the record, which is a sample, is of an event of a CPU and not of a thread. */
bool bpf_record_of_cpu(const void *from);
/* The copy that was read, as a sample that is valid until the next record is read. time:
 * CLOCK_MONOTONIC ns. false: the record contradicts itself. */
bool bpf_record_sample(struct bpf_record_reader *, uint64_t time, uint32_t cpu, struct sample *);
/* To be called after a sample was used: wipes its stack copy, whose process may not be selected any
 * more. */
void bpf_record_wipe(struct bpf_record_reader *, const struct sample *);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What pipeline.c (samples in) and naming.c (profile out) share. Nobody else includes this. */
#ifndef SAMPLING_PIPELINE_STATE_H
#define SAMPLING_PIPELINE_STATE_H

#include "base/dict.h"
#include "base/table.h"
#include "sampling/files.h"
#include "sampling/pipeline.h"
#include "sampling/walk.h"

/* What makes two samples one: a dictionary key, no padding. */
struct sample_key {
	uint64_t process; /* struct process's address: one life */
	uint32_t tid;     /* 0 unless threads are kept apart */
	uint32_t comm;    /* id in comms */
	uint32_t stack;   /* id in stacks */
	uint32_t reason;  /* index into reasons + 1; 0: whole */
};

struct sample_sum {
	uint64_t count, weight;
};

struct waiting {
	struct waiting *next;
	struct process *process;
	struct snapshot_sample sample; /* its pointers point behind this struct */
	uint64_t bytes;
};

struct pipeline {
	struct pipeline_options o;
	struct worker *worker;
	struct process_table *processes;
	struct files *files;
	struct walker walker;
	struct snapshot_handlers handlers;
	struct walk walk;   /* of the sample at hand */
	struct dict frames; /* struct walk_frame */
	struct dict stacks; /* uint32_t ids of frames, leaf first */
	struct dict comms;
	struct dict samples;     /* struct sample_key; id 0 is none */
	struct sample_sum *sums; /* by id in samples */
	uint32_t nsums;
	struct waiting *first, **last;
	uint64_t waiting_bytes;
	uint32_t scan;      /* processes scanned before this one are scanned again */
	uint64_t scan_time; /* when it was last raised */
	uint64_t time;      /* of the newest sample */
	uint32_t answers;   /* of files, when it was last looked at */
	struct pipeline_reason reasons[64];
	struct pipeline_stats stats;
	struct pipeline_poor *poor;
	uint32_t npoor;
};
#endif

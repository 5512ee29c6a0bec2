/* SPDX-License-Identifier: Apache-2.0 */
/* What pipeline.c (samples in), pipeline_tell.c (what the kernel is told) and build.c (profile out)
 * share. Nobody else includes this. */
#ifndef SAMPLING_PIPELINE_STATE_H
#define SAMPLING_PIPELINE_STATE_H

#include "unwind/claims.h"
#include "sampling/collector.h"
#include "unwind/files.h"
#include "sampling/pipeline.h"
#include "unwind/walk.h"

struct waiting {
	struct waiting *next;
	struct process *process;
	struct pipeline_route route;
	char comm[16];        /* its thread may end, and be forgotten, before it is walked */
	struct sample sample; /* its pointers point behind this struct */
	uint64_t bytes;
};

struct pipeline {
	struct pipeline_options o;
	struct worker *worker;
	struct process_table *processes;
	struct files *files;
	struct claims *claims;
	struct walker walker;
	struct perf_stream_handlers handlers;
	struct bpf_sampler *bpf; /* borrowed; NULL: none */
	bool stale;              /* some process is, for the kernel */
	bool no_room;            /* ...there for one of them */
	uint64_t tidied;         /* when ended ones were last looked for, for that reason */
	uint64_t as_of;          /* until when records were handed over */
	uint32_t told_answers;   /* of files, when the kernel was last told */
	struct walk walk;        /* of the sample at hand */
	struct collector *slots[PIPELINE_SLOTS];
	struct waiting *first, **last;
	uint64_t waiting_bytes;
	uint64_t kept, kept_since;   /* bytes of them in this second; when it began */
	uint32_t scan;               /* processes scanned before this one are scanned again */
	uint64_t scan_time;          /* when it was last raised */
	uint64_t scan_pause;         /* and how long it is not raised again */
	bool missed;                 /* something was lost: it is to be raised */
	uint64_t time;               /* of the newest sample */
	uint32_t answers;            /* of files, when it was last looked at */
	struct loss_account account; /* of complete and truncated samples */
	struct pipeline_stats stats;
};

/* The kernel is to be told anew of this process. */
static inline void set_stale(struct pipeline *p, struct process *proc)
{
	proc->sampler.stale = p->stale = true;
}

/* What it has mapped now, and nothing else. */
void pipeline_look_again(struct pipeline *, struct process *);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* struct pipeline, for pipeline.c, pipeline_processes.c and pipeline_scan.c (mappings), budget.c,
 * pipeline_samples.c (samples), pipeline_stopped.c, pipeline_records.c (stacks that were unwound in
 * the kernel), build_profile.c, build_poor.c and fetching.c only. */
#ifndef PIPELINE_STATE_H
#define PIPELINE_STATE_H

#include "process/maps_reader.h"
#include "pipeline/collector.h"
#include "pipeline/internal/kernel_view.h"
#include "pipeline/pipeline.h"
#include "pipeline/internal/waiting.h"
#include "unwind/claims.h"
#include "unwind/files.h"
#include "unwind/made_code.h"
#include "unwind/walk.h"
#include "unwind/walk_language.h"

/* The time that was used in a second. */
struct time_used {
	uint64_t second; /* CLOCK_MONOTONIC s */
	uint64_t ns;     /* CPU time of the control thread and, of `reading`, of the reader's */
	uint32_t records;
};

/* A pause between two tries, which grows while it is begun again soon after its end. */
struct growing_pause {
	uint64_t until_ns; /* CLOCK_MONOTONIC */
	uint64_t ns;       /* 0: there was none */
};

/* What the pipeline keeps for each process: process_owner(). */
struct followed {
	struct kernel_view view; /* first: kernel_view_of() */
	uint32_t scan;           /* number of the scan that read its mappings; 0: none did */
	uint64_t waiting_bytes;  /* of samples of it that wait */
	uint64_t retry_ns;       /* its mappings are read again at a sample after this; 0: never */
	struct growing_pause retry;

	/* Of pipeline_scan.c. */
	uint64_t read_ns; /* its mappings were read, and are of this time or later; 0: never */
	struct growing_pause unmapped; /* until they may be read because of such a sample */
	bool unread;                   /* the last reading failed, or found nothing */
	bool reading;                  /* its mappings are being read by another thread */
	bool again;                    /* after that they are to be read again */
	bool awaited;                  /* they are not known yet: nothing is published */
	bool rereads;                  /* those that were not read are to be dropped */
	bool mapped; /* a record of a mapping came after the first of them was taken */

	/* Of budget.c. */
	uint64_t paused; /* since when; 0: it is not. CLOCK_MONOTONIC ns */
	struct time_used mapping;
};

/* After records were lost, mappings are read from /proc again. */
struct rescan {
	uint32_t number;   /* processes with a lower number are scanned at their next sample */
	bool due;          /* something was lost: `number` is to be raised */
	uint64_t time;     /* when it was raised last, CLOCK_MONOTONIC ns */
	uint64_t pause_ns; /* how long it is not raised again */
};

/* An answer of the reader is taken in slices. */
struct taking {
	struct maps_answer *answer; /* NULL: none */
	uint32_t named, taken;      /* names of threads and mappings of it, so far */
};

struct pipeline {
	struct pipeline_options o;
	struct worker *worker; /* borrowed */
	struct process_table *processes;
	struct files *files;
	struct claims *claims;
	struct made_code *made;
	struct walker walker;
	struct walk walk; /* of the current sample */
	struct perf_stream_handlers handlers;
	struct kernel_views views;
	struct collector *slots[PIPELINE_SLOTS];
	struct waiting_queue waiting;
	struct rescan rescan;
	struct time_used mapping;    /* for records of mappings, of all processes */
	struct time_used reading;    /* for /proc; its records are readings with a budget */
	struct maps_reader *reader;  /* NULL: mappings are read at once */
	struct taking taking;        /* of what the reader answered */
	bool scanned;                /* since waiting samples were last retried */
	bool behind;                 /* samples that could be unwound wait, for lack of time */
	uint64_t time;               /* of the newest sample, CLOCK_MONOTONIC ns */
	pid_t unrecorded;            /* an emission of this thread's next stack was lost; 0: none */
	uint32_t answers;            /* of the worker, when waiting samples were last retried */
	uint64_t step_answers;       /* the same, for steps */
	struct loss_account account; /* of complete and truncated samples */
	struct pipeline_stats stats;
};

static inline struct followed *followed_of(struct process *p)
{
	return process_owner(p);
}

/* ---- pipeline_processes.c ---- */

#define PIPELINE_PAUSE_NS 1000000000ull /* between two scans after losses, at least */

void pipeline_set_process_handlers(struct pipeline *);
/* The process has this mapping since then; 0: since before it was known. */
void pipeline_map(struct pipeline *, struct process *, uint64_t since,
		  const struct procfs_mapping *);
/* Begins the pause, `most_ns` long at most. */
void pipeline_begin_pause(struct growing_pause *, uint64_t most_ns);
/* Its mappings are to be read again, a moment later. */
void pipeline_retry_later(struct process *);

/* ---- pipeline_scan.c ---- */

/* Reads the process's mappings, if records were lost since they were read last. */
void pipeline_scan_if_due(struct pipeline *, struct process *);
/* Reads the process's mappings and removes those that are not in /proc. false: that is done later,
 * and kernel_view_was_read() is called. */
bool pipeline_reread(struct pipeline *, struct process *);

/* An address of a sample of that time is in no known mapping: has the mappings read, unless they
 * were read since then or a moment ago. true: they are being read, or were just read. */
bool pipeline_read_unmapped(struct pipeline *, struct process *, uint64_t time);
/* May there be mappings of that time that are not known? */
bool pipeline_is_unread(const struct pipeline *, const struct followed *, uint64_t time);

/* ---- pipeline_samples.c ---- */

void pipeline_set_sample_handlers(struct pipeline *);
/* Routes a sample and finds its process. NULL: the sample is accounted for. */
struct process *pipeline_begin_sample(struct pipeline *, const struct sample *,
				      struct pipeline_route *);
/* Makes pipeline.walk an empty stack. LOSS_NONE: there is no reason yet. */
void pipeline_clear_walk(struct pipeline *, enum loss_reason);

/* ---- pipeline_add.c ---- */

/* Adds a sample, whose stack is pipeline.walk, to the collectors of its route. */
void pipeline_add(struct pipeline *, struct process *, const struct sample *,
		  const struct pipeline_route *, const char *comm);

/* ---- pipeline_made.c ---- */

/* As pipeline_add(), but a sample whose stack passes through code made at run time waits until that
 * was read again. over: the process over whose mappings it was unwound. */
void pipeline_deliver(struct pipeline *, struct process *, const struct sample *,
		      const struct pipeline_route *, const char *comm, struct process *over);
/* Adds such a sample. false: it waits on. late: not any longer. */
bool pipeline_retry_made(struct pipeline *, struct waiting *, bool late);

/* ---- pipeline_records.c ---- */

void pipeline_set_record_handlers(struct pipeline *);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* struct pipeline, for the sources of core/pipeline, and for build_profile.c, build_poor.c and
 * fetching.c of core/profiler only. */
#ifndef PIPELINE_STATE_H
#define PIPELINE_STATE_H

#include "process/maps_reader.h"
#include "pipeline/collector.h"
#include "pipeline/internal/kernel_view.h"
#include "pipeline/pipeline.h"
#include "pipeline/internal/preceding.h"
#include "pipeline/internal/waiting.h"
#include "unwind/claims.h"
#include "unwind/forgetting.h"
#include "files/files.h"
#include "unwind/made_code.h"
#include "unwind/same_frames.h"
#include "unwind/walk.h"
#include "unwind/walk_language.h"

/* The time that was used in a second. */
struct time_used {
	uint64_t second; /* CLOCK_MONOTONIC s */
	uint64_t ns;     /* CPU time of the control thread and, of `reading`, of the reader */
	uint32_t records;
};

/* A pause between tries, which grows if it begins again soon after its end. */
struct growing_pause {
	uint64_t until_ns; /* CLOCK_MONOTONIC */
	uint64_t ns;       /* 0: there was no pause yet */
};

/* The pipeline's data of each process: process_owner(). */
struct followed {
	struct kernel_view view; /* first: kernel_view_of() */
	uint32_t scan;           /* number of the scan that read its mappings; 0: none */
	uint64_t waiting_bytes;  /* of its waiting samples */
	uint64_t retry_ns;       /* its mappings are read again at a sample after this; 0: never */
	struct growing_pause retry;

	/* For scan.c. */
	uint64_t read_ns;              /* its mappings are at least as new as this; 0: never read */
	struct growing_pause unmapped; /* until a sample without a mapping may make them be read */
	bool unread;                   /* the last reading failed, or found nothing */
	bool reading;                  /* its mappings are being read by another thread */
	bool again;                    /* they must be read again after that */
	bool awaited;                  /* they are not known yet: nothing is published */
	bool rereads;                  /* mappings that the reading lacks are dropped */
	bool mapped; /* a record of a mapping arrived while the answer was being taken */

	/* For texts.c. */
	bool texts; /* a mapping may have a file's text, and was not compared yet */
	struct growing_pause text_pause; /* until it may be compared again */
	struct time_used compared;       /* only `second` and `records` */

	/* For budget.c. */
	uint64_t paused; /* CLOCK_MONOTONIC ns of its begin; 0: not paused */
	struct time_used mapping;
};

/* After records were lost, mappings are read from /proc again. */
struct rescan {
	uint32_t number;   /* processes with a lower number are scanned at their next sample */
	bool due;          /* records were lost: `number` must be raised */
	uint64_t time;     /* when it was raised last, CLOCK_MONOTONIC ns */
	uint64_t pause_ns; /* how long it then is not raised again */
};

/* An answer of the reader is taken in slices. */
struct taking {
	struct maps_answer *answer; /* NULL: none */
	uint32_t named, taken;      /* names of threads and mappings taken so far */
};

/* Of texts.c, of all processes. */
struct texts {
	struct time_used compared; /* only `second` and `records` */
	uint32_t answers;          /* of the worker, when texts were last settled */
	uint64_t due_ns;           /* when they are to be settled again; 0: never */
};

/* Answers of the worker. */
struct answered {
	uint32_t files;
	uint64_t steps;
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
	struct time_used mapping;   /* for records of mappings, of all processes */
	struct time_used reading;   /* for /proc; its `records` counts readings with a budget */
	struct maps_reader *reader; /* NULL: mappings are read at once */
	struct taking taking;       /* of the reader's answers */
	struct texts texts;
	bool scanned;                /* since waiting samples were last retried */
	bool behind;                 /* samples wait only for lack of time */
	uint64_t time;               /* of the newest sample, CLOCK_MONOTONIC ns */
	struct preceding preceding;  /* of samples that follow */
	struct answered answered;    /* when waiting samples were last retried */
	struct loss_account account; /* of complete and truncated samples */
	struct pipeline_stats stats;
};

static inline struct followed *followed_of(struct process *p)
{
	return process_owner(p);
}

/* ---- processes.c ---- */

#define PIPELINE_PAUSE_NS 1000000000ull /* the shortest time between scans after losses */

void pipeline_set_process_handlers(struct pipeline *);
/* Adds a mapping that exists since `since`; 0: since before the process was known. */
void pipeline_map(struct pipeline *, struct process *, uint64_t since,
		  const struct procfs_mapping *);
/* Makes its mappings be read again, a moment later. */
void pipeline_retry_later(struct process *);

/* ---- mappings.c ---- */

/* Adds a mapping to the process's, unless it is known. */
void pipeline_put_mapping(struct pipeline *, struct process *, const struct process_mapping *);
/* Begins the pause, `most_ns` long at most. */
void pipeline_begin_pause(struct growing_pause *, uint64_t most_ns);

/* ---- texts.c ---- */

/* As pipeline_put_mapping(). Parts of memory that have the code of `text` are mappings of their
 * own. */
void pipeline_put_memory(struct pipeline *, struct process *, const struct process_mapping *);
/* Compares memory of the process that was not compared yet and now may be. Costs nothing while
 * there is none. */
void pipeline_settle_texts(struct pipeline *, struct process *);
/* The same for all processes, if something is due. */
void pipeline_settle_all_texts(struct pipeline *);
/* The same, and no sample waits longer. */
void pipeline_finish_texts(struct pipeline *);

/* ---- scan.c ---- */

/* Reads the process's mappings, if records were lost since they were read last. */
void pipeline_scan_if_due(struct pipeline *, struct process *);
/* Reads the process's mappings and removes those that are not in /proc. false: they are read later,
 * and kernel_view_was_read() is called. */
bool pipeline_reread(struct pipeline *, struct process *);

/* To be called if an address of a sample of that time is in no known mapping: has the mappings
 * read, unless they were read since then or a moment ago. true: they are being read, or were just
 * read. */
bool pipeline_read_unmapped(struct pipeline *, struct process *, uint64_t time);
/* Whether there may be unknown mappings of that time. */
bool pipeline_is_unread(const struct pipeline *, const struct followed *, uint64_t time);

/* ---- samples.c ---- */

void pipeline_set_sample_handlers(struct pipeline *);
/* Routes a sample and finds its process. NULL: the sample is accounted for. */
struct process *pipeline_begin_sample(struct pipeline *, const struct sample *,
				      struct pipeline_route *);
/* Makes pipeline.walk an empty stack. LOSS_NONE: there is no reason yet. */
void pipeline_clear_walk(struct pipeline *, enum loss_reason);

/* ---- add.c ---- */

/* Adds a sample, whose stack is pipeline.walk, to the collectors of its route. */
void pipeline_add(struct pipeline *, struct process *, const struct sample *,
		  const struct pipeline_route *, const char *comm);

/* ---- made.c ---- */

/* Adds a walk of a sample to a collector; NULL: it has no frames. As collector_add(). */
int pipeline_collect(const struct pipeline *, struct collector *, const struct process *,
		     const struct sample *, const struct pipeline_route *, const char *comm,
		     const struct walk *, uint32_t reason);
/* As pipeline_add(), but a sample whose stack passes through code made at run time waits until that
 * code was read again. over: the process over whose mappings it was unwound. */
void pipeline_deliver(struct pipeline *, struct process *, const struct sample *,
		      const struct pipeline_route *, const char *comm, struct process *over);
/* Adds such a sample. false: it continues to wait. late: it must not wait any longer. */
bool pipeline_retry_made(struct pipeline *, struct waiting *, bool late);

/* ---- records.c ---- */

void pipeline_set_record_handlers(struct pipeline *);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the pipeline keeps and does for a process that maps very much code, or changes it very
 * often. Beyond its budget a process is paused: nothing is known of its mappings, records of them
 * are skipped, and its samples are truncated (LOSS_TOO_MANY_MAPPINGS). After a while its mappings
 * are read anew. If all processes together have too many, the process with most is paused.
 */
#ifndef PIPELINE_BUDGET_H
#define PIPELINE_BUDGET_H

#include "pipeline/state.h"

/* CPU time for records of mappings: of a process in a second, of all, and of a process beyond that.
 */
#define BUDGET_PROCESS_NS 20000000ull
#define BUDGET_ALL_NS 300000000ull
#define BUDGET_REST_NS 1000000ull
#define BUDGET_RECORDS \
	256u /* of a process in a second, however slow the machine, before all is used */
#define BUDGET_MAPPINGS (512u << 10)   /* of all processes */
#define BUDGET_PAUSE_NS 5000000000ull  /* at least */
#define BUDGET_READING_NS 100000000ull /* for mappings that are read from /proc, in a second */
#define BUDGET_READINGS 64u            /* in a second */

/* A record of a mapping of the process was read at `now`, CLOCK_MONOTONIC ns. false: it is to be
 * skipped. Otherwise its work is done between budget_begin() and budget_add(). */
bool budget_allows(struct pipeline *, struct process *, uint64_t now);
uint64_t budget_begin(void); /* CPU time of this thread in ns: `began` */
void budget_add(struct pipeline *, struct process *, uint64_t began);
/* The process has more mappings than it may. */
void budget_pause(struct pipeline *, struct process *, uint64_t time);
/* Pauses the process with most mappings if there are too many. */
void budget_check_mappings(struct pipeline *, uint64_t time);
/* May mappings be read from /proc now, beyond what all processes need once? Followed by
 * budget_add_reading(). */
bool budget_may_read(struct pipeline *, uint64_t now);
/* A sample of the process arrived. true: it was paused, and its mappings are to be read now,
 * followed by budget_add_reading(). */
bool budget_end_pause(struct pipeline *, struct process *, uint64_t time);
void budget_add_reading(struct pipeline *, uint64_t began);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Budgets for processes that map very much code, or change it very often. A process beyond its
 * budget is paused: its mappings are forgotten, records of mappings are skipped, and its samples
 * are truncated (LOSS_TOO_MANY_MAPPINGS). After a while its mappings are read anew. If all
 * processes together have too many, the process with most is paused.
 */
#ifndef PIPELINE_BUDGET_H
#define PIPELINE_BUDGET_H

#include "pipeline/state.h"

/* CPU time a second for records of mappings: of a process, of all processes, and of a process when
 * all is used.
 */
#define BUDGET_PROCESS_NS 20000000ull
#define BUDGET_ALL_NS 300000000ull
#define BUDGET_REST_NS 1000000ull
#define BUDGET_RECORDS \
	256u /* records that a process may always have in a second, on slow machines too */
#define BUDGET_MAPPINGS (512u << 10)   /* of all processes */
#define BUDGET_PAUSE_NS 5000000000ull  /* at least */
#define BUDGET_READING_NS 100000000ull /* for mappings that are read from /proc, in a second */
#define BUDGET_READINGS 64u            /* in a second */

/* Whether a record of a mapping, read at `now` (CLOCK_MONOTONIC ns), is handled; false: it is
 * skipped. Its handling is between budget_begin() and budget_add(). */
bool budget_allows(struct pipeline *, struct process *, uint64_t now);
uint64_t budget_begin(void); /* CPU time of this thread in ns: `began` */
void budget_add(struct pipeline *, struct process *, uint64_t began);
/* Pauses a process that has too many mappings. */
void budget_pause(struct pipeline *, struct process *, uint64_t time);
/* Pauses the process with most mappings if there are too many. */
void budget_check_mappings(struct pipeline *, uint64_t time);
/* Whether mappings may be read from /proc now, in addition to the first reading of each process.
 * Followed by budget_add_reading(). */
bool budget_may_read(struct pipeline *, uint64_t now);
/* To be called for each sample. true: the process was paused, and its mappings are to be read now,
 * followed by budget_add_reading(). */
bool budget_end_pause(struct pipeline *, struct process *, uint64_t time);
void budget_add_reading(struct pipeline *, uint64_t began);
#endif

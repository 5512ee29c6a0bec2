/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merges windows of one partition into one file of each table, with the memory of a row group and
 * of the numbers of the stacks. Rows are counted first, and then copied in the order of order.h:
 * for each row group that is written, the windows are read again, but only those of their row
 * groups that have rows for it. Windows of the same types are merged, at most as many as `fusee
 * query` reads at once.
 */
#ifndef PARQUET_MERGE_H
#define PARQUET_MERGE_H

#include "input.h"

/* A window that may be merged. */
struct merge_window {
	char name[NAME_SIZE];
	uint64_t types;                     /* hash of the types of its samples' values */
	uint64_t window;                    /* hash of its time, length, period and profile */
	uint64_t ino, samples_bytes, bytes; /* of its samples; bytes: also of its stacks */
	bool chosen;
};

struct merge_options {
	int64_t codec;
	mode_t dir_mode, file_mode;
};

struct merge; /* two files that are being written */

/* Reads all members but `chosen` of a window. `at`: the folders of its partition. 0; -errno: it
 * cannot be merged, *why: a sentence or "". */
int merge_inspect(struct merge_window *, const int at[TABLES], const char **why);
/* Begins the files `name`, unfinished in `dir`. `at` is borrowed. */
int merge_new(struct merge **, int dir, const char *name, const int at[TABLES],
	      const struct merge_options *);
/* Adds a window and counts its rows. After an error the files can only be discarded. *why as above;
 * *broken: the window is the cause. */
int merge_add(struct merge *, const struct merge_window *, const char **why, bool *broken);
/* No more should be added. */
bool merge_is_full(const struct merge *);
/* After the last window: decides the row groups. 0 or -errno. */
int merge_order(struct merge *);
/* Copies rows of the next window: all windows in the order of their addition, and then the first
 * again, until merge_is_copied(). Errors as of merge_add(). */
int merge_copy(struct merge *, const struct merge_window *, const char **why, bool *broken);
bool merge_is_copied(const struct merge *);
/* Completes the files, on the disk. 0 or -errno. */
int merge_finish(struct merge *);
uint64_t merge_bytes(const struct merge *);
/* NULL is allowed. The unfinished files stay. */
void merge_free(struct merge *);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The two tables of a profile. */
#ifndef PARQUET_ROWS_H
#define PARQUET_ROWS_H

#include <fusee/parquet.h>
#include <fusee/rows.h>

/* Writes the samples of a profile; stacks: the frames of their stacks. Both finish(). 0 or the
 * first error of a writer, -ENOMEM. */
int rows_write(const struct fusee_profile *, struct fusee_parquet *samples,
	       struct fusee_parquet *stacks, struct fusee_rows_shortened *);

/* The columns with Bloom filters, by table. */
extern const struct fusee_table rows_filtered[2];
/* The columns of both tables, and how rows are sorted. */
extern const struct fusee_table rows_samples, rows_samples_sort, rows_stacks, rows_stacks_sort;
/* The order of rows in merged files: rows of a stack are adjacent, so its text is in a row group
 * once. */
extern const struct fusee_table rows_samples_merged_sort, rows_stacks_merged_sort;

/* Places of columns: of values common to all samples of a window, and of a stack's number in
 * `stacks`. */
enum { ROWS_TS, ROWS_DURATION, ROWS_PERIOD, ROWS_PROFILE, ROWS_WINDOW };
extern const uint32_t rows_window[ROWS_WINDOW], rows_stack_id;
/* Columns of `samples` that decide a row's place in a merged file, or are checked. */
enum { ROWS_COUNTED = 8 };
extern const uint32_t rows_counted[ROWS_COUNTED];
/* Other columns of `samples`, and the frames of `stacks`. */
extern const uint32_t rows_service, rows_label_key, rows_sample_stack, rows_sample_stack_id,
	rows_stack_frames;
#endif

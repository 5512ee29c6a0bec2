/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROWS_INTERNAL_H
#define ROWS_INTERNAL_H

#include <stdbool.h>

#include <fusee/rows.h>

#include "stack.h"

/* The labels of one sample, sorted by key. */
struct row_labels {
	const struct fusee_label *at[FUSEE_ROWS_LABELS];
	uint32_t n;
	struct fusee_rows_label others[FUSEE_ROWS_LABELS];
	char numbers[FUSEE_ROWS_LABELS][24]; /* of labels that have a number for a text */
	char ids[2][33];                     /* of the span, of the trace */
};

/* A stack of at least one sample. */
struct row_stack {
	uint64_t at;         /* offset of its text in `texts`, or why it is not kept */
	uint32_t len, stack; /* stack: of the profile */
	int64_t id;
};

struct fusee_rows {
	const struct fusee_profile *p;
	struct fusee_rows_options o;
	struct row_stack *stacks; /* in the order of the samples */
	uint32_t *places;         /* of each stack of the profile in `stacks`, + 1; 0: unused */
	uint64_t nstacks;
	uint32_t count_type, per_sample; /* count_type: types.n if there is none */
	uint32_t nsamples;               /* rows of each type */
	uint32_t *merged;                /* by row: the first of its samples; NULL: one each */
	int64_t *sums;                   /* of their values */
	struct fusee_bytes text, texts;  /* of one stack; of all that are kept */
	struct fusee_rows_frame *frames; /* of the stack that was filled last */
	uint64_t cap;
	struct row_labels labels;
	struct fusee_rows_shortened shortened;
};

/* The text, truncated to the limit before a character. */
struct fusee_str rows_bounded(struct fusee_rows *, struct fusee_str);
/* Finds which samples are one row. 0 or -ENOMEM. */
int rows_merge(struct fusee_rows *);
/* Fills the labels of a row. */
void rows_labels(struct fusee_rows *, const struct fusee_sample *, struct fusee_rows_sample *);
/* Fills the frames of a row. 0 or -ENOMEM. */
int rows_frames(struct fusee_rows *, const struct fusee_stack *, struct fusee_table *frames);
#endif

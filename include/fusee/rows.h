/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fusee/rows.h - a profile as rows of two tables, for stores that are queried by SQL: `samples` has
 * a row for each sample and each type of value, `stacks` the frames of each stack. Optional: a
 * plugin links it statically (libfusee-rows.a, `pkg-config --libs fusee-rows`; in fusee's own tree
 * the plugin's file `uses` has the line "rows").
 */
#ifndef FUSEE_ROWS_H
#define FUSEE_ROWS_H

#include <fusee/helpers.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FUSEE_ROWS_LABELS 128 /* of a sample; others are not in its row */

/* Labels that are columns of their own, and not in the map of the others. */
enum fusee_rows_own {
	FUSEE_ROWS_HOST,
	FUSEE_ROWS_SERVICE, /* the label service_name */
	FUSEE_ROWS_PROCESS,
	FUSEE_ROWS_NAMESPACE,
	FUSEE_ROWS_POD,
	FUSEE_ROWS_CONTAINER,
	FUSEE_ROWS_THREAD,
	FUSEE_ROWS_TRACE, /* trace_id and span_id, in hexadecimal */
	FUSEE_ROWS_SPAN,
	FUSEE_ROWS_OWN
};

struct fusee_rows_options {
	uint64_t max_text;   /* bytes of a text; longer texts are truncated before a character */
	uint32_t max_frames; /* of a stack; those after them are not in its row */
	uint32_t ids; /* 0: samples that differ only in their trace and span are one row, without */
};

struct fusee_rows_label {
	struct fusee_str key, value;
};

/* A row of `samples`. Its texts are valid until the next call for these rows. */
struct fusee_rows_sample {
	struct fusee_str sample_type, unit, stack; /* stack: "root;caller;leaf" */
	int64_t value, count, stack_id; /* count: of samples; 0: the profile does not have it */
	uint32_t pid, tid;
	struct fusee_str own[FUSEE_ROWS_OWN]; /* "": the sample does not have the label */
	struct fusee_table labels; /* struct fusee_rows_label: all others, by key, each once */
};

/* A source frame, or an address without one: then function, file and line are empty. */
struct fusee_rows_frame {
	struct fusee_str function, file, mapping, build_id, type, language;
	int64_t line, address, start_line;
	int64_t inlined; /* 1: into the frame after it, else 0 */
	int64_t flags;   /* enum fusee_location_flags, from bit 8 on enum fusee_frame_flags of the
			    function, from bit 16 on enum fusee_mapping_flags */
};

/* A row of `stacks`, valid until the next call for these rows. */
struct fusee_rows_stack {
	int64_t id; /* equal frames have equal numbers, in every profile; 0: without frames */
	struct fusee_str stack;
	struct fusee_table frames; /* struct fusee_rows_frame, leaf first */
};

/* Counts what was truncated or omitted. */
struct fusee_rows_shortened {
	uint64_t stacks; /* folded stacks whose outermost frames are "[too long]" */
	uint64_t frames; /* stacks of which `stacks` has the innermost frames only */
	uint64_t labels; /* labels of samples that have too many, or texts that were truncated */
};

struct fusee_rows;

/* The profile is borrowed until fusee_rows_close(). 0 or -ENOMEM. Any thread, as all of these: one
 * at a time for the same rows. */
int fusee_rows_open(struct fusee_rows **ret, const struct fusee_profile *,
		    const struct fusee_rows_options *);
void fusee_rows_close(struct fusee_rows *); /* NULL is valid */

/* Rows of each table. A row has the same number each time that this profile is opened. */
uint64_t fusee_rows_nsamples(const struct fusee_rows *);
uint64_t fusee_rows_nstacks(const struct fusee_rows *);
/* Fills *row with row i. 0 or -ENOMEM. */
int fusee_rows_fill_sample(struct fusee_rows *, uint64_t i, struct fusee_rows_sample *row);
int fusee_rows_fill_stack(struct fusee_rows *, uint64_t i, struct fusee_rows_stack *row);
/* The number of stack i, without its frames. */
int64_t fusee_rows_stack_id(const struct fusee_rows *, uint64_t i);
/* Of the rows that were filled. */
struct fusee_rows_shortened fusee_rows_count_shortened(const struct fusee_rows *);

#ifdef __cplusplus
}
#endif
#endif

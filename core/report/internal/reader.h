/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a profile into a model: samples.c (from samples to stacks) and frames.c (from a stack's
 * locations to frames). Only they include this. */
#ifndef REPORT_READER_H
#define REPORT_READER_H

#include "report/internal/samples.h"

/* Of a function: the expressions that match it, and whether its language hides it. */
enum { MATCH_FOCUS = 1, MATCH_IGNORE = 2, MATCH_HIDE = 4, MATCH_HIDDEN = 8 };

/* The function of the model that a function of the profile had last, and its module and group. */
struct seen {
	uint32_t module, group, id;
};

/* Frames that are behind each other in the model: of a location, or of a group's labels. They are
 * made once for a group of functions. */
struct located {
	uint32_t group, first, n; /* group UINT32_MAX: not made */
};

/* Reads one of the two profiles into the model. */
struct reader {
	struct render_model *m;
	const struct fusee_profile *p;
	const struct render_labels *labels;
	const struct render_options *o;
	struct render_tables *t;
	bool is_base;
	uint32_t type;
	uint32_t used;           /* MATCH_* of the expressions that were given */
	uint8_t *function_match; /* MATCH_* by function of the profile */
	uint8_t *mapping_match;
	uint32_t *module_of;               /* by mapping */
	struct seen *seen;                 /* by function of the profile */
	struct located *located;           /* by location, for each of the two ways */
	uint8_t *ways;                     /* by location: enum way */
	bool aliases;                      /* frame i is that of location i, if it has one */
	struct buf indices;                /* uint32_t: the frames of the stack that is read */
	struct buf labels_at;              /* struct located, by group: its labels as frames */
	const struct fusee_sample *before; /* the sample of the last group_of(), and its group */
	uint32_t before_group;
	struct dict entry_keys;
	struct buf entries;
	uint32_t group;        /* of functions: 0 but for RENDER_BY_ROW */
	struct buf key;        /* of a function */
	struct buf labels_key; /* of a group */
	int error;
};

/* 0 or -ENOMEM; render_frames_fini() in any case. */
int render_frames_init(struct reader *);
void render_frames_fini(struct reader *);
/* Sets the frames of an entry's stack, the labels of its group included. No frames: all are hidden,
 * or there was an error. */
void render_frames_put(struct reader *, const struct fusee_stack *, uint32_t group,
		       struct render_stack *to);
#endif

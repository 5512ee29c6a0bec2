/* SPDX-License-Identifier: Apache-2.0 */
/* A file of samples that is being read: shared by samples.c, profile.c and sums.c. */
#ifndef PARQUET_READING_H
#define PARQUET_READING_H

#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "parquet/internal/merged.h"
#include "parquet/internal/samples.h"
#include "parquet/internal/stacks.h"
#include "parquet/internal/table.h"

#define MAX_TYPES 64

/* The columns of labels are first. */
enum {
	HOST,
	SERVICE,
	PROCESS,
	NAMESPACE,
	POD,
	CONTAINER,
	THREAD,
	TRACE_ID, /* never in the map, if the file has the column */
	SPAN_ID,
	OWN, /* their number */
	KEY = OWN,
	VALUE_OF_KEY,
	SAMPLE_TYPE,
	UNIT,
	PID,
	TID,
	VALUE,
	COUNT,
	STACK,
	/* the same in all rows: their bounds are read */
	TS,
	DURATION,
	PROFILE,
	PERIOD,
	COLUMNS,
};

/* A row group's rows. */
struct parquet_group_rows {
	uint32_t *parts;  /* of each row; PARQUET_NO_WINDOW: it is omitted. NULL: no row is taken */
	uint64_t n;       /* rows that are taken */
	uint32_t *stacks; /* by row of the group: index in the builder; NULL: all 0 */
};

struct reading {
	struct parquet_window *window;
	const struct store_request *request;
	struct parquet_table t;
	struct parquet_stacks stacks;
	struct builder *b;
	struct fusee_str types[MAX_TYPES][2];    /* name and unit, in the file */
	uint32_t ntypes, count_type, first_type; /* count_type: ntypes if there is none */
	bool is_merged, matches;      /* matches: functions are matched, not stacks read */
	struct parquet_merged merged; /* its windows: one unless it is_merged */
	struct parquet_group_rows *groups;
	uint64_t ntaken;
	struct buf kind;              /* the value of PROFILE, unless is_merged */
	struct builder_place *places; /* where parts begin, and the end of all */
};

/* Labels that are columns of their own. */
extern const char *const parquet_own_labels[OWN];

static inline int reading_fail(struct reading *r, const char *why)
{
	r->window->why = why;
	return -EINVAL;
}

/* Loads columns of the row group. */
static inline int reading_load(struct reading *r, const uint32_t *columns, uint64_t n)
{
	return parquet_table_load(&r->t, columns, (uint32_t)n, &r->window->why);
}

/* Reads the types of samples from the file's metadata. */
int parquet_profile_types(struct reading *);
/* The index of a row's type; ntypes: an unknown type. */
uint32_t parquet_profile_type(const struct reading *, uint64_t row);
/* A builder for all parts. */
int parquet_profile_begin(struct reading *);
/* The losses of a part. */
int parquet_profile_losses(struct reading *, uint32_t part);
/* Adds the rows of the row group, those with equal labels of request->keys as one sample. */
int parquet_sums_add(struct reading *, const struct parquet_group_rows *);
/* Finishes the builder and hands over each part that has samples. */
int parquet_profile_deliver(struct reading *, int (*each)(void *, const struct fusee_profile *),
			    void *arg);
#endif

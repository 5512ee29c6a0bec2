/* SPDX-License-Identifier: Apache-2.0 */
/* What parquet_samples.c and parquet_profile.c share: a file of samples that is being read. */
#ifndef QUERY_PARQUET_READING_H
#define QUERY_PARQUET_READING_H

#include <string.h>

#include "base/buf.h"
#include "query/parquet_merged.h"
#include "query/parquet_samples.h"
#include "query/parquet_stacks.h"
#include "query/parquet_table.h"

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

/* A row group's rows that are taken, in order of their parts. */
struct parquet_group_rows {
	uint32_t *rows;  /* NULL: none */
	uint32_t *parts; /* of each row of the group; PARQUET_NO_WINDOW: it is omitted */
	uint64_t n, next;
};

struct reading {
	struct parquet_window *window;
	const struct store_request *request;
	struct parquet_table t;
	struct parquet_stacks stacks;
	struct builder *b;
	struct fusee_str types[MAX_TYPES][2];    /* name and unit, in the file */
	uint32_t ntypes, count_type, first_type; /* count_type: ntypes if there is none */
	bool is_merged;
	struct parquet_merged merged; /* its windows: one unless it is_merged */
	struct parquet_group_rows *groups;
	uint64_t ntaken;
	struct buf kind;              /* what PROFILE says, unless it is_merged */
	struct builder_place *places; /* where parts begin, and the end of all */
};

static inline int reading_fail(struct reading *r, const char *why)
{
	r->window->why = why;
	return -EINVAL;
}

static inline struct fusee_str reading_text(const char *s)
{
	return (struct fusee_str){s, strlen(s)};
}

static inline bool reading_same(struct fusee_str a, struct fusee_str b)
{
	return a.len == b.len && (!a.len || !memcmp(a.p, b.p, a.len));
}

/* The types that the file says its samples have. */
int parquet_profile_types(struct reading *);
/* A builder for all parts. */
int parquet_profile_begin(struct reading *);
/* The losses of a part. */
int parquet_profile_losses(struct reading *, uint32_t part);
/* Finishes the builder and hands over each part that has samples. */
int parquet_profile_deliver(struct reading *, int (*each)(void *, const struct fusee_profile *),
			    void *arg);
#endif

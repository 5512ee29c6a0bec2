/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the stacks that the samples of a window refer to by number, from its file of stacks into a
 * builder. */
#ifndef PARQUET_STACKS_H
#define PARQUET_STACKS_H

#include <stdbool.h>

#include "base/hashmap.h"
#include "profile/builder.h"
#include "parquet/internal/table.h"

struct parquet_stacks {
	struct hashmap numbers; /* by a stack's number, mixed: key_of() in stacks.c */
	uint64_t seed;          /* odd; 0: nothing is required yet */
};

void parquet_stacks_fini(struct parquet_stacks *);
/* Marks a stack as required. 0 or -ENOMEM. */
int parquet_stacks_require(struct parquet_stacks *, int64_t number);
/* Memory that the numbers take. */
uint64_t parquet_stacks_bytes(const struct parquet_stacks *);
/* Reads the required stacks. Adds the bytes that were read to *bytes. 0; -ENOENT: there is no file
 * of stacks; other errors as in table.h. */
int parquet_stacks_read(struct parquet_stacks *, struct builder *, struct files *, const char *path,
			uint64_t *bytes, const char **why);
/* The builder's index of a stack that was read. */
uint32_t parquet_stacks_at(const struct parquet_stacks *, int64_t number);

/* ---- for stacks.c and match.c ---- */

#define PARQUET_STACKS_ID 0 /* the column of the stacks' numbers, which is loaded first */

struct parquet_stacks_reading {
	struct parquet_stacks *stacks;
	const struct parquet_column *columns;
	uint32_t ncolumns;
	const char **why;
	struct parquet_table t;
	uint64_t missing; /* stacks that are required and not read yet */
};

/* Opens the file and calls read() for each row group with missing stacks, until none is missing.
 * Returns as parquet_stacks_read(); an error of read() ends it. */
int parquet_stacks_read_groups(struct parquet_stacks_reading *, struct files *, const char *path,
			       uint64_t *bytes, int (*read)(void *arg), void *arg);
/* Whether this stack is required and not read yet. */
bool parquet_stacks_is_missing(const struct parquet_stacks *, int64_t number);
/* Sets the index of a missing stack, which then is not missing any more. 0 or -ENOMEM. */
int parquet_stacks_put(struct parquet_stacks_reading *, int64_t number, uint32_t index);
#endif

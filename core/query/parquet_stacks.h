/* SPDX-License-Identifier: Apache-2.0 */
/* The stacks of a window: those whose numbers its samples have, read from its file of stacks into a
 * builder. */
#ifndef QUERY_PARQUET_STACKS_H
#define QUERY_PARQUET_STACKS_H

#include <stdbool.h>

#include "base/hashmap.h"
#include "profile/builder.h"
#include "query/files.h"

struct parquet_stacks {
	struct hashmap numbers; /* by a stack's number, mixed; see parquet_stacks.c */
	uint64_t seed;          /* odd; 0: nothing is required yet */
};

void parquet_stacks_fini(struct parquet_stacks *);
/* A stack is required. 0 or -ENOMEM. */
int parquet_stacks_require(struct parquet_stacks *, int64_t number);
/* Memory that the numbers take. */
uint64_t parquet_stacks_bytes(const struct parquet_stacks *);
/* Reads those that are required. *bytes: adds what was read. 0; -ENOENT: there is no file of
 * stacks; as parquet_table.h. */
int parquet_stacks_read(struct parquet_stacks *, struct builder *, struct files *, const char *path,
			uint64_t *bytes, const char **why);
/* The builder's index of a stack that was read. */
uint32_t parquet_stacks_at(const struct parquet_stacks *, int64_t number);
/* For what reads stacks: whether this stack is required and not read yet; its index from now on. 0
 * or -ENOMEM. */
bool parquet_stacks_is_missing(const struct parquet_stacks *, int64_t number);
int parquet_stacks_put(struct parquet_stacks *, int64_t number, uint32_t index);
/* Why a stack is missing at the end. */
#define PARQUET_STACKS_LACKING "it lacks stacks that samples of its window have"
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the stacks of a window that have a selected function. Of frames only the names are read; of
 * row groups without a selected name only the dictionaries. */
#ifndef PARQUET_MATCH_H
#define PARQUET_MATCH_H

#include "query/functions.h"
#include "parquet/internal/stacks.h"

/* As parquet_stacks_read(), but a stack without such a function gets index 0, and all others the
 * index of one stack in the builder, which has one such function. Only if parquet_match_can(). */
int parquet_match_read(struct parquet_stacks *, struct functions *, struct builder *,
		       struct files *, const char *path, uint64_t *bytes, const char **why);
bool parquet_match_can(struct functions *); /* NULL: false */
#endif

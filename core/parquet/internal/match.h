/* SPDX-License-Identifier: Apache-2.0 */
/* Which stacks of a window have a function that is selected: of frames only the names are read, and
 * of row groups without such a name only those of their dictionaries. */
#ifndef PARQUET_MATCH_H
#define PARQUET_MATCH_H

#include "query/functions.h"
#include "parquet/internal/stacks.h"

/* As parquet_stacks_read(), but a stack without such a function gets index 0, and the others that
 * of one stack in the builder, which has one of these functions. No expression that matches a frame
 * without a name: parquet_match_can(). */
int parquet_match_read(struct parquet_stacks *, struct functions *, struct builder *,
		       struct files *, const char *path, uint64_t *bytes, const char **why);
bool parquet_match_can(struct functions *); /* NULL: false */
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Which kind of store a place is. */
#ifndef QUERY_PLACE_H
#define QUERY_PLACE_H

#include "query/store.h"

/* Opens the store at a place: a folder of sink.parquet if it has `samples` and `stacks` in it,
 * otherwise a folder of pprof files. 0; -EINVAL: it is no such place, with a malloc'ed sentence in
 * *error; -ENOMEM. */
int place_open(struct store **ret, const char *place, char **error);
#endif

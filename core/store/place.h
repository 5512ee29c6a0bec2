/* SPDX-License-Identifier: Apache-2.0 */
/* Which kind of store a place is. */
#ifndef STORE_PLACE_H
#define STORE_PLACE_H

#include "plugin/instance.h"
#include "query/store.h"

/* Opens the store at a place: a folder of sink.parquet if it has `samples` and `stacks` in it,
 * otherwise a folder of pprof files. 0; -EINVAL: it is no such place, with a malloc'ed sentence in
 * *error; -ENOMEM. */
int place_open(struct store **ret, const char *place, char **error);
/* Opens the store that an instance of sink.parquet can read back: its bucket. The instance belongs
 * to it, also after an error. 0 or -ENOMEM. */
int place_open_bucket(struct store **ret, struct fusee_instance *);
#endif

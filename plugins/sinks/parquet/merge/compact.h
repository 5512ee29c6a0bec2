/* SPDX-License-Identifier: Apache-2.0 */
/* Merges the windows of hours that have ended, a part of the work after each delivery. */
#ifndef PARQUET_COMPACT_H
#define PARQUET_COMPACT_H

#include "../folder.h"

struct compact; /* of an instance */

/* age: ns since an hour's end, 0: nothing is ever merged. codec: as enum fusee_parquet_codec.
 * -ENOMEM. */
int compact_new(struct compact **, struct fusee_folder *, uint64_t age, int64_t codec);
void compact_free(struct compact *); /* NULL is allowed */
/* Works for about half a second, unless the window that was just delivered is of an hour that is
 * due to be merged: more such windows may follow and are delivered first. dir: the folder. Failures
 * are logged and counted, and leave the folder unchanged. */
void compact_work(struct compact *, int dir, uint64_t window_ns);
/* [any thread] compact_work() returns soon, now and always. */
void compact_cancel(struct compact *);
#endif

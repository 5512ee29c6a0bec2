/* SPDX-License-Identifier: Apache-2.0 */
/* The store that is a folder of sink.parquet: samples/ and stacks/ with a file of each window in
 * partitions, date=2026-11-22/hour=08. */
#ifndef QUERY_PARQUET_H
#define QUERY_PARQUET_H

#include "query/store.h"

/* Each store_read() lists the files anew. 0; -ENOENT: it is no such folder, or there is none;
 * -errno. */
int parquet_open(struct store **ret, const char *path);
#endif

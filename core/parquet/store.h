/* SPDX-License-Identifier: Apache-2.0 */
/* The store that sink.parquet has written, in a folder or a bucket: samples/ and stacks/ with a
 * file of each window in partitions, date=2026-11-22/hour=08. */
#ifndef PARQUET_STORE_H
#define PARQUET_STORE_H

#include "parquet/internal/files.h"
#include "query/store.h"

/* Takes the files over; each store_read() lists them anew. 0 or -ENOMEM: then they are the
 * caller's.
 */
int parquet_open(struct store **ret, struct files *);
#endif

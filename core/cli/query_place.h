/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the store that a query reads: a folder, or a bucket by the sink that writes it. */
#ifndef CLI_QUERY_PLACE_H
#define CLI_QUERY_PLACE_H

#include "query/store.h"

/* place: a folder, or s3://NAME/PREFIX; options: of a bucket, as `--sink parquet:` has them; NULL:
 * none. 0, or an exit code after errors were logged. */
int query_place_open(struct store **ret, const char *place, const char *options);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what a query selects from a store: progress, files that cannot be read, errors. */
#ifndef CLI_QUERY_READ_H
#define CLI_QUERY_READ_H

#include "base/buf.h"
#include "query/store.h"

/* What takes the windows, as merged_add(), sums_add() and label_list_add() do. */
typedef int query_take(void *to, const struct fusee_profile *, const char *name, struct buf *error);

/* Reads the windows of a request. Files that cannot be read are named, the first ten of them, and
 * counted. An exit code, after one error was logged. */
int query_read(struct store *, const struct store_request *, query_take *, void *to,
	       struct store_counts *);
/* What was taken of it. */
struct query_taken {
	uint64_t stacks; /* with their labels, of each window */
	int64_t samples; /* the same in samples, if `counts` */
	bool counts;     /* the windows say it */
};
/* A line on stderr: how much was read, of both sides of a comparison. */
void query_log_counts(const struct store_counts *, const struct store_counts *,
		      const struct query_taken *);
#endif

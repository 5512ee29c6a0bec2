/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what a query selects from a store: progress, files that cannot be read, errors. */
#ifndef CLI_QUERY_READ_H
#define CLI_QUERY_READ_H

#include "base/buf.h"
#include "query/merged.h"
#include "query/store.h"

/* Takes a window, as merged_add(), sums_add() and label_list_add() do. */
typedef int query_take(void *to, const struct fusee_profile *, const char *name, struct buf *error);

/* Reads the windows of a request. Counts files that cannot be read, and names the first ten. An
 * exit code, after one error was logged. */
int query_read(struct store *, const struct store_request *, query_take *, void *to,
	       struct store_counts *);
/* The data that was taken. */
struct query_taken {
	uint64_t stacks; /* with their labels, per window */
	int64_t samples; /* if `counts` */
	bool counts;     /* the windows count samples */
};
/* A line on stderr: how much was read, of both sides of a comparison. */
void query_log_counts(const struct store_counts *, const struct store_counts *,
		      const struct query_taken *);
/* The same of merged windows, which were finished; before: zeros if there is no comparison. */
void query_log_merged(const struct store_counts *, const struct store_counts *,
		      const struct merged *now, const struct merged *before);
/* Warns of values of so many windows that were added up although each is of a moment. */
void query_log_moments(const char *type, uint64_t windows);
#endif

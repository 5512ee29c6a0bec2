/* SPDX-License-Identifier: Apache-2.0 */
/* Explains why a query has taken no sample. */
#ifndef CLI_QUERY_NOTHING_H
#define CLI_QUERY_NOTHING_H

#include "query/store.h"

struct query_nothing {
	struct store *store;
	const struct store_request *request; /* that took nothing */
	const struct store_counts *counts;   /* of that request */
	const char *place, *selector;        /* as typed */
	const char *side; /* "", or the option of the comparison's side, "--diff: " */
};

/* Logs an error. */
void query_log_nothing(const struct query_nothing *);
#endif

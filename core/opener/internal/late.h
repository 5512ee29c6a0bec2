/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that came too late for their queries. The next query for the same mapping, or the same
 * comparison, gets them. For opener.c. */
#ifndef OPENER_LATE_H
#define OPENER_LATE_H

#include "opener/opener.h"

#define OPENER_LATE 4u /* answers; the oldest is replaced */

/* The part of a query that finds a late answer to it. */
struct opener_late_query {
	pid_t pid;
	struct procfs_mapping mapping;   /* without its name; ino 0: no query for a mapping */
	uint64_t address, bytes, offset; /* of a comparison; bytes 0: no comparison */
	uint64_t sent;                   /* CLOCK_MONOTONIC ns */
};

struct opener_late {
	uint32_t n; /* answers that were ever kept */
	struct {
		struct opener_late_query query;
		struct opener_answer answer; /* fd -1: no answer, or of a comparison */
		uint64_t until;              /* CLOCK_MONOTONIC ns; 0: no answer */
	} all[OPENER_LATE];
};

void opener_late_init(struct opener_late *);
struct opener_late_query opener_late_query(const struct opener_query *, uint64_t sent);
/* Takes the answer over, and keeps it if it is of a mapping or a comparison. Returns the bytes of
 * copies that were closed: of this answer, or of the oldest. */
uint64_t opener_late_keep(struct opener_late *, const struct opener_late_query *,
			  const struct opener_answer *);
/* false: there is no late answer to this query. true: *answer is the caller's. */
bool opener_late_take(struct opener_late *, const struct opener_query *, uint64_t now,
		      struct opener_answer *);
/* Closes answers that are too old at `now`; UINT64_MAX: all. Returns the bytes of copies that were
 * closed. Lowers *at (NULL is fine; 0: unset) to the time at which the next answer will be too old.
 */
uint64_t opener_late_expire(struct opener_late *, uint64_t now, uint64_t *at);
#endif

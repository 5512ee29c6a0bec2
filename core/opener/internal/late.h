/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that came too late for their queries: the next query for the same mapping, or of the same
 * comparison, takes them. Part of opener.c. */
#ifndef OPENER_LATE_H
#define OPENER_LATE_H

#include "opener/opener.h"

#define OPENER_LATE 4u /* answers; the oldest is replaced */

/* What was requested, as far as a late answer to it can be kept. */
struct opener_late_query {
	pid_t pid;
	struct procfs_mapping mapping;   /* without its name; ino 0: not of a mapping */
	uint64_t address, bytes, offset; /* of a comparison; bytes 0: of none */
	uint64_t sent;                   /* CLOCK_MONOTONIC ns */
};

struct opener_late {
	uint32_t n;
	struct {
		struct opener_late_query query;
		struct opener_answer answer; /* fd -1: none, or of a comparison */
		uint64_t until;              /* 0: no answer */
	} all[OPENER_LATE];
};

void opener_late_init(struct opener_late *);
struct opener_late_query opener_late_query(const struct opener_query *, uint64_t sent);
/* Keeps the answer, which is the store's now, if it can be. Returns the bytes of copies that it has
 * closed. */
uint64_t opener_late_keep(struct opener_late *, const struct opener_late_query *,
			  const struct opener_answer *);
/* true: the answer is the caller's. */
bool opener_late_take(struct opener_late *, const struct opener_query *, uint64_t now,
		      struct opener_answer *);
/* Closes what is too old; UINT64_MAX: all. Returns the bytes of copies. Makes *at (NULL is fine)
 * the time of the next that will be, if that is earlier or *at is 0. */
uint64_t opener_late_expire(struct opener_late *, uint64_t now, uint64_t *at);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is in use of all processes that an agent samples, for the windows of all its sinks. One
 * collector of the pipeline has the hits that are followed; a window that is closed takes from it
 * what is in use then. For the thread of the profiler.
 */
#ifndef PROFILER_IN_USE_LEDGER_H
#define PROFILER_IN_USE_LEDGER_H

#include <stdint.h>

#include "profiler/in_use.h"

struct collector_carrying;
struct in_use_ledger;

/* The profiler follows allocations; it is borrowed. 0 or -errno. */
int in_use_ledger_new(struct in_use_ledger **ret, struct profiler *);
void in_use_ledger_free(struct in_use_ledger *); /* before the profiler is closed; NULL is fine */
/* The bit of its slot, which routes of followed hits have beside those of windows. NULL: 0. */
uint64_t in_use_ledger_slots(const struct in_use_ledger *);
/* Forgets what has been freed: to be called now and then; NULL is fine. */
void in_use_ledger_prune(struct in_use_ledger *);
/* Adds what is in use now to the collector of a window that was closed. 0, or -errno: it lacks
 * some. */
int in_use_ledger_add(struct in_use_ledger *, struct collector *,
		      const struct collector_carrying *);

struct in_use_counts {
	struct in_use_totals used; /* of all processes, at the end of the last window */
	uint64_t unheld;           /* hits for which the ledger had no room */
	uint64_t failed;           /* windows that lack some, since there was no memory */
	uint64_t uncarried;        /* stacks that windows lack, since they had no room */
	uint64_t bytes;            /* of memory */
};

struct in_use_counts in_use_ledger_counts(const struct in_use_ledger *);
#endif

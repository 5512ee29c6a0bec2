/* SPDX-License-Identifier: Apache-2.0 */
/* Rings by the time of their oldest record: the next record of all costs the same order of
 * comparisons for hundreds of CPUs as for few, where a look at each ring for each record would
 * cost the square of their number. It needs no memory of its own. */
#ifndef EVENTS_RING_QUEUE_H
#define EVENTS_RING_QUEUE_H

#include "events/internal/ring.h"

/* A pairing heap; zeros: empty. */
struct ring_queue {
	struct ring *first;
};

/* Adds a ring, which is not in it, if it has an unread record. */
void ring_queue_add(struct ring_queue *, struct ring *);
/* The ring whose oldest record is the oldest of all, the first in memory where times are equal;
 * NULL: there is no record older than `until`. */
struct ring *ring_queue_oldest(const struct ring_queue *, uint64_t until);
/* That ring's record was read: gives its bytes back to the kernel and goes to its next. */
void ring_queue_next(struct ring_queue *);
#endif

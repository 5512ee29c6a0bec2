/* SPDX-License-Identifier: Apache-2.0 */
#include "events/internal/ring_queue.h"

#include <stdbool.h>
#include <stddef.h>

#include "events/internal/event.h"

static bool is_before(const struct ring *a, const struct ring *b)
{
	return a->queued.time < b->queued.time || (a->queued.time == b->queued.time && a < b);
}

/* Of two heaps one, each NULL or without a sibling. */
static struct ring *meld(struct ring *a, struct ring *b)
{
	struct ring *first = a, *later = b;

	if (!a || !b)
		return a ? a : b;
	if (is_before(b, a)) {
		first = b;
		later = a;
	}
	later->queued.sibling = first->queued.child;
	first->queued.child = later;
	return first;
}

static struct ring *pop(struct ring **list)
{
	struct ring *r = *list;

	if (r) {
		*list = r->queued.sibling;
		r->queued.sibling = NULL;
	}
	return r;
}

/* Of a list of heaps one: by pairs from its begin, then these from its end. */
static struct ring *meld_all(struct ring *list)
{
	struct ring *pairs = NULL, *all = NULL, *a, *b;

	while ((a = pop(&list))) {
		b = pop(&list);
		a = meld(a, b);
		a->queued.sibling = pairs;
		pairs = a;
	}
	while ((a = pop(&pairs)))
		all = meld(all, a);
	return all;
}

void ring_queue_add(struct ring_queue *q, struct ring *r)
{
	const struct perf_event_header *h = ring_peek(r);

	if (!h)
		return;
	r->queued = (struct ring_place){.time = event_time(h)};
	q->first = meld(q->first, r);
}

struct ring *ring_queue_oldest(const struct ring_queue *q, uint64_t until)
{
	return q->first && q->first->queued.time < until ? q->first : NULL;
}

void ring_queue_next(struct ring_queue *q)
{
	struct ring *r = q->first;

	q->first = meld_all(r->queued.child);
	ring_next(r);
	ring_release(r);
	ring_queue_add(q, r);
}

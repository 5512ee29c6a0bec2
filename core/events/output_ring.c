/* SPDX-License-Identifier: Apache-2.0 */
#include "events/internal/output_ring.h"

#include <unistd.h>

/* A program that has begun to write into the ring that was exchanged is done by then: it cannot be
 * interrupted by other threads. */
#define WRITTEN_NS 1000000000u

double output_ring_refresh(struct output_ring *o)
{
	uint64_t unread;

	if (o->before.page)
		ring_refresh(&o->before);
	if (!o->ring.page)
		return 0;
	ring_refresh(&o->ring);
	unread = o->ring.head - o->ring.tail;
	o->fullest = o->fullest < unread ? unread : o->fullest;
	return ring_full(&o->ring);
}

uint64_t output_ring_want(struct output_ring *o, uint64_t most, uint64_t now)
{
	bool needs = o->refused || o->fullest > OUTPUT_LEAST / 2;

	o->refused = false;
	o->fullest = 0;
	if (needs || !o->needed)
		o->needed = now;
	if (needs)
		return most;
	return now - o->needed > OUTPUT_CALM_NS ? OUTPUT_LEAST : o->ring.size;
}

static void close_before(struct output_ring *o)
{
	if (!o->before.page)
		return;
	ring_close(&o->before);
	close(o->before_fd);
}

void output_ring_exchange(struct output_ring *o, const struct ring *new, int fd, uint64_t now)
{
	close_before(o);
	o->before = o->ring;
	o->before_fd = fd;
	o->ring = *new;
	o->exchanged = now;
}

bool output_ring_may_exchange(const struct output_ring *o, uint64_t now)
{
	return o->ring.page && !o->before.page && now - o->exchanged > WRITTEN_NS;
}

void output_ring_end_before(struct output_ring *o, uint64_t now)
{
	if (!o->before.page || now - o->exchanged <= WRITTEN_NS)
		return;
	ring_refresh(&o->before);
	if (o->before.head == o->before.tail)
		close_before(o);
}

void output_ring_close(struct output_ring *o)
{
	close_before(o);
	ring_close(&o->ring);
}

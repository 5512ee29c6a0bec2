/* SPDX-License-Identifier: Apache-2.0 */
/* One CPU's perf ring, read in place. */
#ifndef EVENTS_RING_H
#define EVENTS_RING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

struct ring {
	struct perf_event_mmap_page *page;
	char *data;
	uint64_t size;       /* of data, a power of two */
	uint64_t head, tail; /* what is between is ours to read */
	char *wrapped;       /* 64 KiB: a record that wraps around is put together here */
};

int ring_open(struct ring *, int fd,
	      uint64_t *size); /* tries smaller sizes where the limit forbids; 0 or -errno */
void ring_close(struct ring *);
void ring_refresh(struct ring *); /* takes note of what has been written since */
/* The oldest record, or NULL. A record that lies about its size ends the ring's content. */
const struct perf_event_header *ring_peek(struct ring *);
void ring_next(struct ring *);         /* done with it */
void ring_release(struct ring *);      /* gives the room back to the kernel */
double ring_full(const struct ring *); /* share in use, 0 to 1 */
#endif

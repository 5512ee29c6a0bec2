/* SPDX-License-Identifier: Apache-2.0 */
/* The perf ring of one CPU. Records are read where the kernel wrote them. */
#ifndef EVENTS_RING_H
#define EVENTS_RING_H

#include <linux/perf_event.h>
#include <stdint.h>

struct ring;

/* In a struct ring_queue. */
struct ring_place {
	uint64_t time; /* of the oldest record */
	struct ring *child, *sibling;
};

struct ring {
	struct perf_event_mmap_page *page;
	char *data;
	uint64_t size;       /* of data in bytes, a power of two */
	uint64_t head, tail; /* the bytes in between are unread */
	char *wrapped;       /* 64 KiB: holds a record that wraps around the end */
	struct ring_place queued;
};

#define RING_MIN (128u << 10) /* two records of the largest size */

/* The size of each of n rings: the smallest power of two that is at least `need`, halved while all
 * together take more than `total` and each is larger than `min`, a power of two. */
uint64_t ring_choose_size(uint64_t need, uint64_t min, uint32_t n, uint64_t total);
/* Bytes after which the kernel wakes the reader of a ring of that size. */
uint32_t ring_wake_bytes(uint64_t size);
/* Maps the ring of an event. *size in bytes is halved while RLIMIT_MEMLOCK forbids it. 0 or
 * -errno. */
int ring_open(struct ring *, int fd, uint64_t *size);
void ring_close(struct ring *); /* zeros are fine */
/* Reads the kernel's head: later calls see what was written until now. */
void ring_refresh(struct ring *);
/* The oldest unread record, valid until the next call; NULL: none. A record of a wrong size ends
 * the ring's content. */
const struct perf_event_header *ring_peek(struct ring *);
/* Goes to the next record after ring_peek(). */
void ring_next(struct ring *);
/* Gives the bytes of read records back to the kernel. */
void ring_release(struct ring *);
/* Calls f for each unread record; they stay unread. */
void ring_each(struct ring *, void (*f)(void *arg, const struct perf_event_header *), void *arg);
/* The share of the ring that is unread, 0 to 1. */
double ring_full(const struct ring *);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "events/internal/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LEAST (4u << 10)
#define MOST_UNREAD (256u << 10)

uint64_t ring_choose_size(uint64_t need, uint64_t min, uint32_t n, uint64_t total)
{
	uint64_t size = min;

	while (size < need)
		size *= 2;
	while (size > min && size * n > total)
		size /= 2;
	return size;
}

/* A ring that is only half read when the next records come has room for them. */
uint32_t ring_wake_bytes(uint64_t size)
{
	return size / 4 < MOST_UNREAD ? (uint32_t)(size / 4) : MOST_UNREAD;
}

int ring_open(struct ring *r, int fd, uint64_t *size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *at = MAP_FAILED;

	*r = (struct ring){0};
	for (; *size >= LEAST; *size /= 2) {
		at = mmap(NULL, page + *size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (at != MAP_FAILED || (errno != EPERM && errno != ENOMEM))
			break;
	}
	if (at == MAP_FAILED)
		return -errno;
	r->wrapped = malloc(UINT16_MAX + 1);
	if (!r->wrapped) {
		munmap(at, page + *size);
		return -ENOMEM;
	}
	r->page = at;
	r->data = (char *)at + page;
	r->size = *size;
	return 0;
}

void ring_close(struct ring *r)
{
	if (r->page)
		munmap(r->page, (size_t)(r->data - (char *)r->page) + r->size);
	free(r->wrapped);
	*r = (struct ring){0};
}

void ring_refresh(struct ring *r)
{
	r->head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
}

const struct perf_event_header *ring_peek(struct ring *r)
{
	uint64_t at = r->tail & (r->size - 1), unread = r->head - r->tail, first;
	const struct perf_event_header *h = (const void *)(r->data + at);

	/* Records are multiples of 8 bytes: a header never wraps. */
	if (unread < sizeof(*h))
		return NULL;
	if (h->size < sizeof(*h) || h->size > unread) {
		r->tail = r->head;
		return NULL;
	}
	if (at + h->size <= r->size)
		return h;
	first = r->size - at;
	memcpy(r->wrapped, r->data + at, first);
	memcpy(r->wrapped + first, r->data, h->size - first);
	return (const void *)r->wrapped;
}

void ring_next(struct ring *r)
{
	uint64_t at = r->tail & (r->size - 1);
	const struct perf_event_header *h = (const void *)(r->data + at);

	if (at + h->size > r->size)
		explicit_bzero(r->wrapped, h->size); /* it may hold a target's stack */
	r->tail += h->size;
}

void ring_release(struct ring *r)
{
	__atomic_store_n(&r->page->data_tail, r->tail, __ATOMIC_RELEASE);
}

void ring_each(struct ring *r, void (*f)(void *arg, const struct perf_event_header *), void *arg)
{
	const struct perf_event_header *h;
	uint64_t tail = r->tail;

	while ((h = ring_peek(r))) {
		f(arg, h);
		ring_next(r);
	}
	r->tail = tail;
}

double ring_full(const struct ring *r)
{
	return (double)(r->head - r->tail) / (double)r->size;
}

/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/events
/* core/events/ring_queue: the records of many rings in the order of their time. */
#include "test.h"

#include "base/clock.h"
#include "events/internal/ring_queue.h"
#include "lib/random.h"

enum { MOST_RINGS = 300, BYTES = 4096, WORDS = 5, MOST_RECORDS = BYTES / (8 * WORDS) };

struct filled {
	struct ring ring;
	struct perf_event_mmap_page page;
	uint64_t data[BYTES / 8];
	char wrapped[UINT16_MAX + 1];
};

static struct filled filled[MOST_RINGS];

/* Writes n records whose times begin at `time`, wrapped around the end of the ring. */
static void fill(struct filled *f, uint32_t n, uint64_t time, uint32_t step)
{
	uint64_t at = BYTES / 8 - 2 * WORDS - 1;

	f->ring = (struct ring){.page = &f->page,
				.data = (char *)f->data,
				.size = BYTES,
				.tail = at * 8,
				.wrapped = f->wrapped};
	for (uint32_t i = 0; i < n; i++, time += step) {
		uint64_t words[WORDS] = {0, 7, i, time, 0};
		struct perf_event_header h = {.type = PERF_RECORD_SAMPLE, .size = sizeof(words)};

		memcpy(words, &h, sizeof(h));
		for (uint32_t k = 0; k < WORDS; k++)
			f->data[at++ % (BYTES / 8)] = words[k];
	}
	f->page.data_tail = f->ring.tail;
	f->page.data_head = at * 8;
	ring_refresh(&f->ring);
}

/* Many records of different rings have equal times. */
static uint32_t fill_some(uint32_t rings)
{
	uint32_t records = 0;

	for (uint32_t i = 0; i < rings; i++) {
		uint32_t n = random32() % MOST_RECORDS;

		fill(&filled[i], n, random32() % 100, random32() % 10);
		records += n;
	}
	return records;
}

static struct ring_queue queue(uint32_t rings)
{
	struct ring_queue q = {0};

	for (uint32_t i = 0; i < rings; i++)
		ring_queue_add(&q, &filled[i].ring);
	return q;
}

/* The oldest record of all by a look at each ring; NULL: none is older than until. */
static struct ring *look(uint32_t rings, uint64_t until)
{
	struct ring *oldest = NULL;

	for (uint32_t i = 0; i < rings; i++) {
		const struct perf_event_header *h = ring_peek(&filled[i].ring);
		uint64_t time;

		if (!h)
			continue;
		memcpy(&time, (const char *)h + 24, sizeof(time));
		if (time < until) {
			until = time;
			oldest = &filled[i].ring;
		}
	}
	return oldest;
}

TEST(the_oldest_is_the_one_that_a_look_at_each_finds)
{
	static const uint32_t sizes[] = {0, 1, 2, 3, 17, MOST_RINGS};

	for (uint32_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++) {
		uint32_t records = fill_some(sizes[k]), read = 0;
		uint64_t until = 400;
		struct ring_queue q = queue(sizes[k]);
		struct ring *r;

		while ((r = ring_queue_oldest(&q, until)) || until != UINT64_MAX) {
			CHECK(r == look(sizes[k], until));
			if (!r) { /* the next drain goes on */
				until = UINT64_MAX;
				q = queue(sizes[k]);
				continue;
			}
			ring_queue_next(&q);
			read++;
		}
		CHECK(!look(sizes[k], UINT64_MAX));
		CHECK_INT(read, records);
		for (uint32_t i = 0; i < sizes[k]; i++) /* the kernel has its room back */
			CHECK_INT(filled[i].page.data_tail, filled[i].page.data_head);
	}
}

/* Printed for the page of benchmarks. */
static double ns_a_record(uint32_t rings)
{
	uint64_t best = UINT64_MAX;

	for (uint32_t turn = 0; turn < 20; turn++) {
		struct ring_queue q;
		uint64_t began, took;

		for (uint32_t i = 0; i < rings; i++)
			fill(&filled[i], 64, i, rings);
		began = clock_now();
		q = queue(rings);
		while (ring_queue_oldest(&q, UINT64_MAX))
			ring_queue_next(&q);
		took = clock_now() - began;
		best = took < best ? took : best;
	}
	return (double)best / (64 * rings);
}

static double ns_a_look(uint32_t rings)
{
	uint64_t best = UINT64_MAX;

	for (uint32_t turn = 0; turn < 20; turn++) {
		struct ring *r;
		uint64_t began, took;

		for (uint32_t i = 0; i < rings; i++)
			fill(&filled[i], 64, i, rings);
		began = clock_now();
		while ((r = look(rings, UINT64_MAX))) {
			ring_next(r);
			ring_release(r);
		}
		took = clock_now() - began;
		best = took < best ? took : best;
	}
	return (double)best / (64 * rings);
}

TEST(a_record_of_many_rings_costs_less_than_a_look_at_each)
{
	static const uint32_t sizes[] = {2, 16, 64, 256};

	for (uint32_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++)
		printf("# %u rings: %.0f ns a record, by a look at each %.0f\n", sizes[k],
		       ns_a_record(sizes[k]), ns_a_look(sizes[k]));
	/* a look at each costs some 100 times as much */
	CHECK(ns_a_record(256) < ns_a_look(256));
}

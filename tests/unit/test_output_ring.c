/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/events
#include "test.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "events/internal/event.h"
#include "events/internal/perf_stream_state.h"

#define SECOND 1000000000ull
#define MOST (1u << 20)

/* A ring in the test's memory, of a given size. */
struct memory_ring {
	struct perf_event_mmap_page page;
	char data[4096];
};

static struct ring of(struct memory_ring *m, uint64_t size)
{
	return (struct ring){.page = &m->page, .data = m->data, .size = size};
}

/* As much is unread. */
static void fill(struct output_ring *o, uint64_t bytes)
{
	o->ring.page->data_head = o->ring.tail + bytes;
	output_ring_refresh(o);
	o->ring.tail = o->ring.page->data_head;
	output_ring_refresh(o);
}

TEST(a_ring_grows_at_once_and_shrinks_after_a_calm)
{
	struct memory_ring m = {0};
	uint64_t now = 100 * SECOND;
	struct output_ring o = {.ring = of(&m, MOST)};

	CHECK_INT(output_ring_want(&o, MOST, now), MOST);
	now += OUTPUT_CALM_NS;
	fill(&o, OUTPUT_LEAST / 2);
	CHECK_INT(output_ring_want(&o, MOST, now), MOST); /* not a moment too early */
	CHECK_INT(output_ring_want(&o, MOST, ++now), OUTPUT_LEAST);
	/* what a large ring holds may be more than half of a small one */
	fill(&o, OUTPUT_LEAST / 2 + 8);
	fill(&o, 8); /* the most counts */
	CHECK_INT(output_ring_want(&o, MOST, now), MOST);
	CHECK_INT(output_ring_want(&o, MOST, now + OUTPUT_CALM_NS), MOST);
	o.ring.size = OUTPUT_LEAST;
	now += 2 * OUTPUT_CALM_NS;
	CHECK_INT(output_ring_want(&o, MOST, now), OUTPUT_LEAST);
	o.refused = true;
	CHECK_INT(output_ring_want(&o, MOST, now), MOST);
	o.ring.size = MOST;
	CHECK_INT(output_ring_want(&o, MOST, now + OUTPUT_CALM_NS), MOST);
	CHECK_INT(output_ring_want(&o, MOST, now + OUTPUT_CALM_NS + 1), OUTPUT_LEAST);
}

/* ---- what is in two rings of one CPU ---- */

struct seen {
	uint64_t times[8], lost;
	uint32_t n;
};

static void on_missed(void *arg, uint64_t time, uint32_t cpu, const struct record_missed *r)
{
	struct seen *s = arg;

	s->times[s->n++ & 7] = time;
}

static void on_forked(void *arg, pid_t pid, pid_t parent, pid_t tid, uint64_t time)
{
	struct seen *s = arg;

	s->times[s->n++ & 7] = time;
}

static void on_lost(void *arg, uint64_t records)
{
	((struct seen *)arg)->lost += records;
}

static void add(struct ring *r, uint32_t type, const void *body, size_t len)
{
	struct perf_event_header h = {.type = type, .size = (uint16_t)(sizeof(h) + len)};

	memcpy(r->data + r->page->data_head, &h, sizeof(h));
	memcpy(r->data + r->page->data_head + sizeof(h), body, len);
	r->page->data_head += h.size;
}

/* A tick without a stack, by the output event with this id. */
static void add_missed(struct ring *r, uint64_t id, uint64_t time)
{
	struct {
		uint64_t id;
		uint32_t pid, tid;
		uint64_t time, cpu;
		uint32_t size;
		char raw[sizeof(struct record_missed) + 4];
	} b = {.id = id, .pid = 40, .tid = 41, .time = time, .size = sizeof(b.raw)};
	const struct record_missed m = {.tick.head = {.kind = RECORD_MISSED, .size = sizeof(m)}};

	memcpy(b.raw, &m, sizeof(m));
	add(r, PERF_RECORD_SAMPLE, &b, sizeof(b));
}

static void add_fork(struct ring *r, uint64_t time)
{
	const struct {
		uint32_t pid, ppid, tid, ptid;
		uint64_t time;
		uint64_t trailer[4]; /* pid and tid, time, CPU, id */
	} b = {40, 1, 40, 1, time, {0, time, 0, 9}};

	add(r, PERF_RECORD_FORK, &b, sizeof(b));
}

TEST(records_of_an_exchanged_ring_keep_their_order)
{
	static struct memory_ring events, first, second;
	static struct perf_stream s;
	const struct perf_stream_handlers on = {
		.missed = on_missed, .forked = on_forked, .lost = on_lost};
	struct seen seen = {0};
	const uint64_t lost[] = {6, 3, 0, 15, 0, 6};
	struct perf_stream_handlers all = on;
	struct stream_cpu c = {.output = 1,
			       .output_id = 6,
			       .old_output_id = 5,
			       .ring = of(&events, sizeof(events.data)),
			       .out.ring = of(&second, sizeof(second.data)),
			       .out.before = of(&first, sizeof(first.data))};

	all.arg = &seen;
	s = (struct perf_stream){.cpus = &c, .ncpus = 1, .online_fd = -1, .epoll = -1};
	add_missed(&c.out.before, 5, 11);
	add_missed(&c.out.before, 5, 14); /* its program had begun before the exchange */
	add_missed(&c.out.ring, 6, 13);
	add(&c.out.ring, PERF_RECORD_LOST, lost, sizeof(lost));
	add_missed(&c.out.ring, 6, 16);
	add_fork(&c.ring, 12);
	add_fork(&c.ring, 16); /* of two at once the programs' is the first */
	perf_stream_drain(&s, &all, true);
	CHECK_INT(seen.n, 6);
	for (uint32_t i = 0; i < 6; i++)
		CHECK_INT(seen.times[i], i < 4 ? 11 + i : 16);
	CHECK_INT(s.account.records.samples, 4);
	CHECK_INT(s.account.records.invalid, 0);
	CHECK_INT(seen.lost, 0); /* no sideband is lost in the programs' ring */
	CHECK(c.out.refused);
}

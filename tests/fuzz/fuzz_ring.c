// SPDX-License-Identifier: Apache-2.0
// clang-format off
// sources: core/events/ring.c core/events/ring_queue.c core/events/output_ring.c core/events/perf_stream_read.c
// sources: core/events/bpf_record.c core/events/missed_ticks.c
// sources: core/base/hashmap.c core/base/clock.c
// flags: -Wl,--wrap=open
// libs:
// clang-format on
// A ring with any records of perf and of the BPF programs, wrapped around its end: each handler is
// called with what is in the ring, and all is read.
#include "fuzz.h"
#include <linux/perf_event.h>

/* event.c has the parsers and also system calls, which this program never makes. */
#include "events/event.c"
#include "bpf/sampler_events.h"
#include "bpf/waits.h"
#include "events/internal/perf_stream_state.h"
#include "events/internal/stream_cpus.h"

#define RING_SIZE 32768u
#define OUTPUT_ID 77

int __wrap_open(const char *path, int flags, ...);
int __real_open(const char *path, int flags, ...);

int __wrap_open(const char *path, int flags, ...)
{
	return __real_open(path, flags, 0600);
}

static uint64_t sum;

/* ---- what reading has of other files ---- */

bool stream_cpus_follow(struct perf_stream *s)
{
	(void)s;
	return false;
}

void stream_cpus_set_copy_budget(struct perf_stream *s, uint64_t took_ns)
{
	(void)s;
	(void)took_ns;
}

bool bpf_sampler_take_wake(struct bpf_sampler *b)
{
	(void)b;
	return false;
}

void bpf_waits_make_room(struct bpf_sampler *b)
{
	(void)b;
}

bool bpf_sampler_may_wake(const struct bpf_sampler *b)
{
	(void)b;
	return false;
}

bool stream_cpu_is_output(const struct stream_cpu *c, const struct perf_event_header *h)
{
	return event_sample_id(h) == c->output_id;
}

/* ---- the handlers ---- */

static void on_sample(void *arg, const struct sample *s)
{
	(void)arg;
	touch(s->kernel, s->nkernel * sizeof(*s->kernel));
	touch(s->stack, s->stack_len);
	if (s->stack_len > SAMPLE_MAX_STACK + 2 * RECORD_PAGE)
		abort();
}

static void on_stack(void *arg, uint64_t time, uint32_t cpu, const struct record_stack *r)
{
	(void)arg;
	(void)time;
	(void)cpu;
	if (r->nkernel > record_words(r) || record_words(r) > RECORD_MAX_WORDS)
		abort();
	touch(r->words, record_words(r) * 8);
}

static void on_continuation(void *arg, uint64_t time, const struct record_stack *r)
{
	if (record_words(r) <= r->nkernel + (r->tick.head.flags & RECORD_PART ? 2 : 0))
		abort();
	on_stack(arg, time, 0, r);
}

static void on_missed(void *arg, uint64_t time, uint32_t cpu, const struct record_missed *r)
{
	(void)arg;
	(void)time;
	(void)cpu;
	touch(r, sizeof(*r));
}

static void on_emission(void *arg, uint64_t time, const struct record_emission *r)
{
	(void)arg;
	(void)time;
	touch(r + 1, r->bytes);
}

static void on_labels(void *arg, const struct record_labels *r)
{
	(void)arg;
	touch(r, RECORD_LABELS_HEAD + r->bytes);
}

static void on_mapped(void *arg, pid_t pid, uint64_t time, const struct procfs_mapping *m)
{
	(void)arg;
	(void)pid;
	(void)time;
	if (m->lo >= m->hi)
		abort();
	touch(m->name, strlen(m->name));
}

static void on_comm(void *arg, pid_t pid, pid_t tid, uint64_t time, const char *comm, bool exec)
{
	(void)arg;
	(void)pid;
	(void)tid;
	(void)time;
	(void)exec;
	touch(comm, strlen(comm));
}

static void on_forked(void *arg, pid_t pid, pid_t parent, pid_t tid, uint64_t time)
{
	(void)arg;
	sum += (uint64_t)pid + (uint64_t)parent + (uint64_t)tid + time;
}

static void on_exited(void *arg, pid_t pid, pid_t tid, uint64_t time)
{
	(void)arg;
	sum += (uint64_t)pid + (uint64_t)tid + time;
}

static void on_lost(void *arg, uint64_t records)
{
	(void)arg;
	sum += records;
}

/* ---- the input: flags, where the ring's head is, then pieces of records ---- */

/* Each record is a multiple of 8 bytes, as the kernel's: type, misc, size in 8 bytes, then bytes.
 */
static uint64_t fill(struct ring *r, const uint8_t *data, size_t size)
{
	uint64_t head = r->tail;

	while (size >= 4 && head - r->tail < RING_SIZE / 2) {
		struct perf_event_header h = {.type = data[0] % 20,
					      .misc = (uint16_t)(data[1] << 8)};
		size_t n = (data[2] | (size_t)data[3] << 8) % 4000 * 8;

		data += 4;
		size -= 4;
		n = n < (size & ~(size_t)7) ? n : size & ~(size_t)7;
		h.size = (uint16_t)(sizeof(h) + n);
		for (size_t i = 0; i < h.size; i++)
			r->data[(head + i) % RING_SIZE] = (char)(i < sizeof(h)
									 ? ((uint8_t *)&h)[i]
									 : data[i - sizeof(h)]);
		head += h.size;
		data += n;
		size -= n;
	}
	return head;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct perf_stream_handlers on = {.sample = on_sample,
						.stack = on_stack,
						.continuation = on_continuation,
						.missed = on_missed,
						.emission = on_emission,
						.labels = on_labels,
						.mapped = on_mapped,
						.comm = on_comm,
						.forked = on_forked,
						.exited = on_exited,
						.lost = on_lost};
	static struct perf_stream s; /* large */
	static struct perf_event_mmap_page page;
	struct stream_cpu c = {.output_id = OUTPUT_ID};

	if (size < 4 || size > RING_SIZE / 2)
		return 0;
	s = (struct perf_stream){.cpus = &c, .ncpus = 1, .online_fd = -1, .epoll = -1};
	s.form = (struct event_form){data[0] & 1, data[0] & 2, data[0] & 4, true, data[0] & 8};
	s.o.period_ns = 1000000;
	s.o.bpf = data[0] & 16 ? (void *)&s : NULL;
	s.o.all = data[0] & 32;
	s.own[0] = data[0] & 64 ? 1 : 0;
	s.nown = 1;
	c.ring = (struct ring){.page = &page,
			       .data = malloc(RING_SIZE), /* so that a byte too far is found */
			       .size = RING_SIZE,
			       .tail = (uint64_t)(data[1] | data[2] << 8) * 8,
			       .wrapped = malloc(UINT16_MAX + 1)};
	if (!c.ring.data || !c.ring.wrapped)
		abort();
	page.data_head = fill(&c.ring, data + 3, size - 3);
	perf_stream_drain(&s, &on, true);
	/* the last of all times is never due */
	if (c.ring.tail != page.data_head && event_time(ring_peek(&c.ring)) != UINT64_MAX)
		abort();
	missed_ticks_fini(&s.account.missed);
	free(c.ring.data);
	free(c.ring.wrapped);
	return 0;
}

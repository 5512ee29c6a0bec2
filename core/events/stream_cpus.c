/* SPDX-License-Identifier: Apache-2.0 */
#include "events/internal/stream_cpus.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "bpf/sampler_events.h"
#include "events/internal/cpus.h"
#include "events/internal/perf_stream_state.h"

#define MIN_COPY_BUDGET (16u << 20)
#define MAX_COPY_BUDGET (64u << 20)
#define LONG_READ_NS 50000000u
#define COPY_SHARE 0.875 /* of a ring; the rest is for other records */

static int list_cpu(struct perf_stream *s, int number)
{
	struct stream_cpu *cpus = realloc(s->cpus, (s->ncpus + 1) * sizeof(*cpus));

	if (!cpus)
		return -ENOMEM;
	s->cpus = cpus;
	cpus[s->ncpus++] = (struct stream_cpu){.number = number, .ring_fd = -1, .output = -1};
	return 0;
}

int stream_cpus_open(struct perf_stream *s)
{
	struct cpus online;
	int r = 0;

	s->online_fd = cpus_open();
	cpus_read(&online, s->online_fd);
	cpu_watch_look(&s->watch, &online);
	for (int i = 0; !r && i < cpus_end(&online); i++)
		if (cpus_has(&online, i))
			r = list_cpu(s, i);
	return r;
}

/* An event of a CPU ended when the CPU went offline. Events of threads are still open; but there
 * are none if the CPU was offline when they were opened. */
static int reopen_cpu(struct perf_stream *s, struct stream_cpu *c)
{
	int r = s->o.dynamic && c->ring_fd < 0 ? event_group_add_ring(s, &s->base, c) : 0;

	if (!r)
		r = event_group_reopen(s, &s->base, c);
	for (struct event_group *g = s->groups; !r && g; g = g->next)
		r = event_group_reopen(s, g, c);
	if (!r && c->ring_fd < 0)
		r = -ENOTSUP;
	if (r || !s->o.bpf)
		return r;
	return stream_cpu_open_output(c, &s->form, s->o.bpf, s->epoll, s->output_bytes);
}

static void cpu_is_back(struct perf_stream *s, struct stream_cpu *c)
{
	int r = reopen_cpu(s, c);

	if (r == -ENODEV) /* offline again */
		return;
	c->offline = false;
	if (r)
		log_warning("CPU %d is online, but what runs there is not sampled: %s", c->number,
			    r == -ENOTSUP
				    ? "it was offline when this began, start again to sample it"
				    : strerror(-r));
	else
		log_info("CPU %d is online; what ran there until now may be missing", c->number);
}

/* Lists CPUs that were never online since the stream was opened. */
static void find_new_cpus(struct perf_stream *s, const struct cpus *online)
{
	struct cpus new = *online;

	for (uint32_t i = 0; i < s->ncpus; i++)
		cpus_remove(&new, s->cpus[i].number);
	for (int i = 0; i < cpus_end(&new); i++)
		if (cpus_has(&new, i) && !list_cpu(s, i))
			s->cpus[s->ncpus - 1].offline = true;
}

bool stream_cpus_follow(struct perf_stream *s)
{
	struct cpus online;
	bool missed = false;

	s->cpus_read_ns = clock_now();
	cpus_read(&online, s->online_fd);
	cpu_watch_look(&s->watch, &online);
	find_new_cpus(s, &online);
	for (uint32_t i = 0; i < s->ncpus; i++) {
		struct stream_cpu *c = &s->cpus[i];
		bool offline = !cpus_has(&online, c->number);

		if (offline && !c->offline) {
			c->offline = true;
			log_info("CPU %d went offline", c->number);
		} else if (!offline && c->offline) {
			cpu_is_back(s, c);
			missed = true;
		}
	}
	return missed;
}

/* Exchanges the rings of the BPF programs' records that are too small, or larger than they need to
 * be. If that fails, it is tried again a second later. */
static void size_outputs(struct perf_stream *s)
{
	uint64_t now = clock_now();

	for (uint32_t i = 0; i < s->ncpus; i++) {
		struct stream_cpu *c = &s->cpus[i];
		uint64_t want;

		output_ring_end_before(&c->out, now);
		if (c->offline || !output_ring_may_exchange(&c->out, now))
			continue;
		want = output_ring_want(&c->out, s->output_bytes, now);
		if (want != c->out.ring.size &&
		    stream_cpu_open_output(c, &s->form, s->o.bpf, s->epoll, want))
			c->out.exchanged = now;
	}
}

/* The budget halves when reading took long: otherwise mappings are published ever later, without
 * which the kernel cannot unwind, and every stack is copied. No CPU may copy more than fits into
 * its ring. */
void stream_cpus_set_copy_budget(struct perf_stream *s, uint64_t took_ns)
{
	uint64_t bytes = !s->copy_budget          ? MAX_COPY_BUDGET
			 : took_ns > LONG_READ_NS ? s->copy_budget / 2
						  : s->copy_budget * 2;

	bytes = bytes < MIN_COPY_BUDGET ? MIN_COPY_BUDGET : bytes;
	bytes = bytes > MAX_COPY_BUDGET ? MAX_COPY_BUDGET : bytes;
	s->copy_budget = bytes;
	if (s->output_bytes)
		size_outputs(s);
	for (uint32_t i = 0; i < s->ncpus; i++) {
		struct stream_cpu *c = &s->cpus[i];
		struct ring *r = c->out.ring.page ? &c->out.ring : &c->ring;
		double free;

		if (c->ring_fd < 0)
			continue;
		ring_refresh(r);
		free = (COPY_SHARE - ring_full(r)) * (double)r->size;
		if (free < (double)bytes)
			bytes = free > 0 ? (uint64_t)free : 0;
	}
	/* the programs at ticks and those of waits copy as much each */
	bpf_sampler_begin_round(s->o.bpf, s->o.wait_periods.n && !s->o.waits ? bytes / 2 : bytes);
}

void stream_cpus_close(struct perf_stream *s)
{
	for (uint32_t i = 0; i < s->ncpus; i++)
		stream_cpu_close(&s->cpus[i]);
	free(s->cpus);
	cpu_watch_close(&s->watch);
	if (s->online_fd >= 0)
		close(s->online_fd);
}

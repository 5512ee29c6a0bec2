/* SPDX-License-Identifier: Apache-2.0 */
#include "profiler/internal/account.h"

#include "base/assert.h"

/* Ticks in the kernel that the stream counts as skipped, of processes that are stopped for their
 * samples: these samples already cover the time in the kernel. */
static uint64_t skipped_of_stopped(const struct profiler *p, const struct stop_counts *c)
{
	struct pipeline_stats stats;
	uint64_t ticks = c->cpu_ns / p->period_ns;

	pipeline_stats(p->pipeline, &stats);
	return ticks > stats.unrouted ? ticks - stats.unrouted : 0;
}

bool profiler_kernel(const struct profiler *p)
{
	return p->stream && perf_stream_kernel(p->stream);
}

void profiler_counts(const struct profiler *p, struct profiler_counts *c)
{
	struct perf_stream_counts *events = &c->events;
	uint64_t less;

	*c = (struct profiler_counts){0};
	if (p->stream)
		perf_stream_counts(p->stream, events);
	if (!p->stop)
		return;
	stop_sampler_counts(p->stop, &c->stop);
	if (!p->stream) {
		events->count_ns = c->stop.cpu_ns;
		return;
	}
	less = skipped_of_stopped(p, &c->stop);
	events->skipped -= less < events->skipped ? less : events->skipped;
}

static void add_lost(struct loss_account *a, const struct perf_stream_counts *before,
		     const struct perf_stream_counts *after)
{
	fusee_assert(after->ring_full >= before->ring_full &&
		     after->unfinished >= before->unfinished);
	loss_account_add(a, LOSS_RING_FULL, after->ring_full - before->ring_full);
	if (after->skipped > before->skipped)
		loss_account_add(a, LOSS_TIMER_SKIPPED, after->skipped - before->skipped);
	loss_account_add(a, LOSS_UNFINISHED, after->unfinished - before->unfinished);
	for (uint32_t i = 0; i < LOSS_SAMPLERS; i++) {
		uint64_t late = after->late[i] - before->late[i];

		loss_account_add(a, LOSS_WAIT_LATE, late);
		a->late[i] += late;
		a->late_weight[i] += after->late_weight[i] - before->late_weight[i];
	}
	loss_account_add(a, LOSS_HIT_DURING_ANOTHER, after->hits.unwalked - before->hits.unwalked);
	loss_account_add(a, LOSS_HIT_NOT_SENT, after->hits.unsent - before->hits.unsent);
	loss_account_add(a, LOSS_HOOK_HIT, after->hits.hooks - before->hits.hooks);
}

static void add_unstopped(const struct profiler *p, struct loss_account *a,
			  const struct stop_counts *before, const struct stop_counts *after)
{
	uint64_t period = p->period_ns ? p->period_ns : 1;

	loss_account_add(a, LOSS_UNFINISHED,
			 (after->unfinished_ns - before->unfinished_ns) / period);
	loss_account_add(a, LOSS_TRACED, (after->traced_ns - before->traced_ns) / period);
	loss_account_add(a, LOSS_NOT_STOPPED, (after->refused_ns - before->refused_ns) / period);
}

void profiler_account(const struct profiler *p, struct loss_account *a)
{
	const struct profiler_counts none = {0};
	struct profiler_counts counts;
	struct pipeline_stats stats;

	pipeline_stats(p->pipeline, &stats);
	profiler_counts(p, &counts);
	*a = *stats.account;
	add_lost(a, &none.events, &counts.events);
	add_unstopped(p, a, &none.stop, &counts.stop);
}

void profiler_account_nothing(const struct profiler *p, struct loss_account *a)
{
	struct pipeline_stats stats;

	pipeline_stats(p->pipeline, &stats);
	*a = *stats.account;
	loss_account_clear(a);
}

void profiler_account_window(const struct profiler *p, const struct collector *c,
			     const struct profiler_counts *before,
			     const struct profiler_counts *after, struct loss_account *a)
{
	profiler_account_nothing(p, a);
	add_lost(a, &before->events, &after->events);
	add_unstopped(p, a, &before->stop, &after->stop);
	for (uint32_t i = 1; i < c->samples.n; i++) {
		const struct sample_key *k = c->samples.entries[i].key;

		loss_account_add(a, k->reason, c->sums[i].count);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The account: ticks that were due, and what came of them. */
#include "bpf/sampler_events.h"
#include "events/perf_stream_state.h"

void perf_stream_count_group(struct perf_stream *s, const struct group *g,
			     struct perf_stream_counts *c)
{
	uint64_t count_ns = 0, lost = 0, ticks;

	for (uint32_t i = 0; i < g->nfds; i++) {
		uint64_t count, n;

		if (!event_read(&s->form, g->fds[i], &count, &n)) {
			count_ns += count;
			lost += n;
		}
	}
	ticks = count_ns / g->period_ns;
	c->count_ns += g->cpus ? 0 : count_ns;
	c->ring_full += lost;
	if (!s->o.bpf) /* which tells it by thread */
		c->skipped += ticks > g->samples + lost ? ticks - g->samples - lost : 0;
}

/* Ticks that found no room. The events count everything that is lost, news of mappings too. Where a
 * program looks at each tick first, it is known better: what it meant to send, or that the events
 * send, and that did not come. */
static uint64_t lost_ticks(struct perf_stream *s, uint64_t of_events)
{
	struct bpf_sampler_stats b;
	uint64_t meant = 0, missing, lost;

	if (!s->o.bpf)
		return of_events;
	bpf_sampler_stats(s->o.bpf, &b);
	for (uint32_t i = TICK_UNWOUND; i <= TICK_CHANGED; i++)
		meant += b.ticks[i];
	missing = meant > s->counts.samples ? meant - s->counts.samples : 0;
	lost = of_events + b.ticks[TICK_RING_FULL];
	return lost < missing ? lost : missing;
}

/* Removed groups, and those that are there. What a group's last samples are short of, while they
 * still lie in the ring, looks like skipped for a moment. */
static void count_groups(struct perf_stream *s, struct perf_stream_counts *c)
{
	c->count_ns = s->gone.count_ns;
	c->skipped = s->o.bpf ? s->tallies.skipped : s->gone.skipped;
	c->ring_full = s->gone.ring_full;
	for (const struct group *g = s->groups; g; g = g->next)
		perf_stream_count_group(s, g, c);
	c->ring_full = lost_ticks(s, c->ring_full);
}

/* The scheduler's clock is not quite the events': it counts switches too, and comes late. The
 * events are exact, but for the period that each thread began on each CPU and did not end. Where
 * these say more, they are believed. */
static uint64_t bounded(const struct perf_stream *s, const struct perf_stream_counts *c)
{
	uint64_t ticks = c->count_ns / s->o.period_ns, seen = c->samples + c->ring_full;
	uint64_t most = ticks > seen ? ticks - seen : 0;
	uint64_t begun = s->tallies.unfinished ? s->tallies.unfinished - 1 : 0;
	uint64_t least = most > begun ? most - begun : 0;
	uint64_t told = c->skipped > c->ring_full ? c->skipped - c->ring_full : 0;

	return told < least ? least : told > most ? most : told;
}

/* The events of the beginning. */
static void count_base(struct perf_stream *s, struct perf_stream_counts *c)
{
	uint64_t lost = 0;

	for (uint32_t i = 0; i < s->base.nfds; i++) {
		uint64_t count, n;

		if (event_read(&s->form, s->base.fds[i], &count, &n))
			continue;
		lost += n;
		if (!s->o.all)
			c->count_ns += count;
	}
	if (s->form.lost)
		c->ring_full = lost_ticks(s, lost);
}

static void count(struct perf_stream *s, struct perf_stream_counts *c)
{
	*c = s->counts;
	c->gaps &= !s->tallies.broken;
	c->skipped = s->tallies.skipped;
	if (s->o.dynamic)
		count_groups(s, c);
	else
		count_base(s, c);
	if (s->o.dynamic && !s->o.bpf)
		return;
	if (s->cpus_ns && s->o.all) {
		c->skipped = bpf_sampler_unseen_ticks(s->o.bpf);
	} else if (s->o.bpf && !s->o.dynamic) {
		c->skipped = bounded(s, c);
	} else if (c->gaps || s->o.all || s->o.dynamic) {
		/* A sample that found no room is a gap too, and already counted. */
		c->skipped -= c->skipped < c->ring_full ? c->skipped : c->ring_full;
		if (s->cpus_ns && s->form.kernel) /* else ticks in the kernel are not due */
			c->skipped += bpf_sampler_unseen_ticks(s->o.bpf);
	} else {
		uint64_t ticks = c->count_ns / s->o.period_ns, seen = c->samples + c->ring_full;

		c->skipped = ticks > seen ? ticks - seen : 0;
	}
}

/* Estimates may fall when the last samples of a ring are read; what was reported once does not. */
static void raise_to(uint64_t *n, uint64_t *reported)
{
	if (*n < *reported)
		*n = *reported;
	*reported = *n;
}

void perf_stream_counts(struct perf_stream *s, struct perf_stream_counts *c)
{
	count(s, c);
	raise_to(&c->ring_full, &s->reported.ring_full);
	raise_to(&c->skipped, &s->reported.skipped);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "events/internal/stream_account.h"

#include "bpf/sampler_events.h"
#include "bpf/probes.h"
#include "bpf/waits.h"
#include "events/internal/perf_stream_state.h"

/* ---- reading the sources ---- */

static void note_unread(void *arg, const struct perf_event_header *h)
{
	struct stream_cpu *c = ((void **)arg)[1];
	struct perf_stream *s = ((void **)arg)[0];
	struct event_group *g;
	uint32_t len, cpu, ids[2];
	const void *from;

	if (h->type != PERF_RECORD_SAMPLE)
		return;
	if (stream_cpu_is_output(c, h)) {
		from = event_parse_output(h, &len, &cpu, ids);
		if (from && bpf_record_is_sample(from, len)) {
			s->account.unread++;
			s->account.own.unread += !bpf_record_of_cpu(from);
		}
		return;
	}
	s->account.unread++;
	g = hashmap_get(&s->group_by_event, event_sample_id(h));
	if (g) {
		g->unread++;
		s->account.own.unread += g->own;
	}
}

/* Samples that are still in the rings are no loss. */
static void count_unread(struct perf_stream *s)
{
	s->account.unread = s->account.own.unread = 0;
	for (struct event_group *g = s->groups; g; g = g->next)
		g->unread = 0;
	for (uint32_t i = 0; i < s->ncpus; i++) {
		void *arg[2] = {s, &s->cpus[i]};

		if (s->cpus[i].ring_fd < 0)
			continue;
		ring_refresh(&s->cpus[i].ring);
		output_ring_refresh(&s->cpus[i].out);
		ring_each(&s->cpus[i].ring, note_unread, arg);
		if (s->cpus[i].out.ring.page)
			ring_each(&s->cpus[i].out.ring, note_unread, arg);
		if (s->cpus[i].out.before.page)
			ring_each(&s->cpus[i].out.before, note_unread, arg);
	}
}

static void read_programs(struct perf_stream *s)
{
	struct bpf_sampler_stats b;

	bpf_sampler_stats(s->o.bpf, &b);
	s->account.programs.failed = b.ticks[TICK_RING_FULL];
	s->account.programs.sent = 0;
	for (uint32_t i = TICK_UNWOUND; i <= TICK_CHANGED; i++)
		s->account.programs.sent += b.ticks[i];
}

/* Reads unread samples last: samples that are sent in between then make losses smaller for a
 * moment, and not larger. */
static void read_sources(struct perf_stream *s)
{
	event_group_read(s, &s->base);
	event_group_read(s, &s->used);
	for (struct event_group *g = s->groups; g; g = g->next)
		event_group_read(s, g);
	if (s->o.bpf)
		read_programs(s);
	count_unread(s);
}

/* ---- what the ways of counting have in common ---- */

static uint64_t above(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* Estimates may fall when clocks differ. What was reported does not. */
static void raise_to(uint64_t *n, uint64_t *reported)
{
	if (*n < *reported)
		*n = *reported;
	*reported = *n;
}

static void add_counts(uint64_t sum[PROBE_RESULT_COUNT], const uint64_t more[PROBE_RESULT_COUNT])
{
	for (uint32_t i = 0; i < PROBE_RESULT_COUNT; i++)
		sum[i] += more[i];
}

/* What became of the hits of all hooks. */
static void read_hooks(const struct perf_stream *s, uint64_t sum[PROBE_RESULT_COUNT])
{
	uint64_t of_tracepoints[PROBE_RESULT_COUNT];

	bpf_hooks_counts(s->o.bpf, false, 0, sum);
	bpf_hooks_counts(s->o.bpf, true, 0, of_tracepoints);
	add_counts(sum, of_tracepoints);
}

/* Hits of probes beside ticks for which the ring had no room: they are no lost ticks. */
static uint64_t unsent_hits(const struct perf_stream *s)
{
	uint64_t hits[PROBE_RESULT_COUNT], hooks[PROBE_RESULT_COUNT];

	bpf_probes_counts(s->o.bpf, hits);
	read_hooks(s, hooks);
	return hits[PROBE_RING_FULL] + hooks[PROBE_RING_FULL];
}

/* Samples for which a ring had no room. Events count them together with lost sideband records;
 * before Linux 6.0 only PERF_RECORD_LOST has them. The BPF programs' counts are a closer limit:
 * samples that they sent, or deferred to the event, and that did not arrive. */
static uint64_t ring_full_of(const struct perf_stream *s, uint64_t lost_by_events)
{
	const struct stream_account *a = &s->account;
	uint64_t lost = s->form.lost ? lost_by_events : a->records.ring_full, missing;

	if (!s->o.bpf)
		return lost;
	lost += a->programs.failed;
	missing = above(a->programs.sent, a->records.samples + a->unread);
	lost = lost < missing ? lost : missing;
	return s->o.hits_beside ? above(lost, unsent_hits(s)) : lost;
}

/* The sums of removed groups and of those that are open. The count of a CPU's event is not in it,
 * because it includes idle time. Returns the lost records. */
static uint64_t sum_groups(const struct perf_stream *s, struct perf_stream_counts *c)
{
	uint64_t lost = s->account.removed.lost;

	c->count_ns = s->account.removed.count_ns;
	for (const struct event_group *g = s->groups; g; g = g->next) {
		c->count_ns += g->cpus ? 0 : g->count_ns;
		lost += g->lost;
	}
	return lost;
}

/* The group's periods without a sample. */
static uint64_t missing_in_group(const struct event_group *g)
{
	return above(g->count_ns / g->period_ns, g->samples + g->unread + g->lost);
}

/* ---- the ways of counting ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Periods of the targets' CPU time without a sample. */
static uint64_t missing_periods(const struct perf_stream *s, const struct perf_stream_counts *c)
{
	return above(c->count_ns / s->o.period_ns, c->samples + s->account.unread + c->ring_full);
}

/* The missing periods that were not skipped are of threads that ended or slept before their tick. A
 * running thread may be in the midst of a period on each CPU, whose tick may still come, so these
 * periods are subtracted. nfds: events of the targets' threads. */
static uint64_t unfinished_of(const struct perf_stream *s, uint64_t missing, uint64_t skipped,
			      uint32_t nfds)
{
	uint64_t running = nfds / s->ncpus + s->account.threads.forked;

	running = s->enabled ? above(running, s->account.threads.ended) : 0;
	return above(missing, skipped + (running + 1) * s->ncpus);
}

static void count_unfinished(const struct perf_stream *s, struct perf_stream_counts *c)
{
	c->unfinished = unfinished_of(s, missing_periods(s, c), c->skipped, s->base.nfds);
}

/* The total does not say why a period has no sample. Each thread that was started has at most one
 * period that is not finished for each CPU. */
static void count_threads_by_total(struct perf_stream *s, struct perf_stream_counts *c)
{
	c->count_ns = s->base.count_ns;
	c->ring_full = ring_full_of(s, s->base.lost);
	c->skipped = above(missing_periods(s, c), s->account.threads.forked * s->ncpus);
	count_unfinished(s, c);
}

static void count_threads_by_sample(struct perf_stream *s, struct perf_stream_counts *c)
{
	if (s->account.missed.broken) {
		count_threads_by_total(s, c);
		return;
	}
	c->count_ns = s->base.count_ns;
	c->ring_full = ring_full_of(s, s->base.lost);
	c->skipped = above(s->account.missed.skipped, c->ring_full);
	count_unfinished(s, c);
}

/* The scheduler's clock and the events' differ: it counts context switches too and is read late.
 * The events are exact, except for the period that each thread began on each CPU and did not end.
 * So run times are believed within these bounds. */
static void count_threads_by_runtime(struct perf_stream *s, struct perf_stream_counts *c)
{
	uint64_t begun = above(s->account.missed.unfinished, 1), max, min, skipped;

	c->count_ns = s->base.count_ns;
	c->ring_full = ring_full_of(s, s->base.lost);
	max = missing_periods(s, c);
	min = above(max, begun);
	skipped = above(s->account.missed.skipped, c->ring_full);
	c->skipped = skipped < min ? min : least(skipped, max);
	count_unfinished(s, c);
}

static void count_cpus_by_sample(struct perf_stream *s, struct perf_stream_counts *c)
{
	c->ring_full = ring_full_of(s, s->base.lost);
	c->skipped = above(s->account.missed.skipped, c->ring_full);
}

static void count_cpus_by_grid(struct perf_stream *s, struct perf_stream_counts *c)
{
	struct bpf_missed_ticks missed;

	c->ring_full = ring_full_of(s, s->base.lost);
	bpf_sampler_missed_ticks(s->o.bpf, &missed);
	c->skipped = missed.all;
}

/* Ticks that a thread's own events skipped, within the bounds of what these counted. */
static uint64_t skipped_of_own(const struct perf_stream *s, const struct perf_stream_counts *c)
{
	const struct stream_account *a = &s->account;
	uint64_t due = 0, max, min, skipped = above(a->missed.skipped, c->ring_full);

	for (const struct event_group *g = s->groups; g; g = g->next)
		due += g->count_ns / g->period_ns;
	max = above(due, a->own.samples + a->own.unread + c->ring_full);
	/* After an exec the events still count, and no tick is a sample. */
	min = a->own.execed ? 0 : above(max, above(a->missed.unfinished, 1));
	return skipped < min ? min : least(skipped, max);
}

static void count_own_and_cpus(struct perf_stream *s, struct perf_stream_counts *c)
{
	struct bpf_missed_ticks missed;
	uint64_t lost = s->base.lost + sum_groups(s, c);

	/* Events of different kinds do not begin and end at the same moment. */
	if (s->nown != s->used.nfds || s->account.own.execed || s->account.own.forked)
		c->count_ns = s->used.count_ns;
	c->ring_full = ring_full_of(s, lost);
	bpf_sampler_missed_ticks(s->o.bpf, &missed);
	c->skipped = skipped_of_own(s, c) + missed.selected;
}

static uint32_t events_of_groups(const struct perf_stream *s)
{
	uint32_t n = 0;

	for (const struct event_group *g = s->groups; g; g = g->next)
		n += g->nfds;
	return n;
}

/* Periods of all groups without a sample, except those for which a ring had no room. */
static uint64_t missing_in_groups(const struct perf_stream *s, uint64_t ring_full)
{
	uint64_t missing = s->account.removed.missing;

	for (const struct event_group *g = s->groups; g; g = g->next)
		missing += missing_in_group(g);
	return s->form.lost ? missing : above(missing, ring_full); /* else groups count no loss */
}

/* As count_threads_by_total(). Threads begin and end all the time, so that what was reported as
 * skipped before remains so. */
static void count_groups_by_total(struct perf_stream *s, struct perf_stream_counts *c)
{
	uint64_t lost = sum_groups(s, c), missing;

	c->ring_full = ring_full_of(s, lost);
	missing = missing_in_groups(s, c->ring_full);
	c->skipped = above(missing, s->account.threads.forked * s->ncpus);
	raise_to(&c->skipped, &s->account.reported.skipped);
	c->unfinished = unfinished_of(s, missing, c->skipped, events_of_groups(s));
}

/* Groups differ in their periods: what is missing is CPU time, and counted in periods of the
 * stream. Where only a part of the ticks was kept, chance decides what is missing, and the figure
 * remains. */
static uint64_t unfinished_of_groups(const struct perf_stream *s,
				     const struct perf_stream_counts *c)
{
	const struct stream_account *a = &s->account;
	uint64_t mean_ns = a->own.samples ? a->own.sampled_ns / a->own.samples : s->o.period_ns;
	uint64_t ticks = a->own.unread + c->ring_full + c->skipped;
	uint64_t missing_ns = above(c->count_ns, a->own.sampled_ns + ticks * mean_ns);

	if (a->own.thinned)
		return 0;
	return unfinished_of(s, missing_ns / s->o.period_ns, 0, events_of_groups(s));
}

static void count_groups_by_runtime(struct perf_stream *s, struct perf_stream_counts *c)
{
	uint64_t lost = sum_groups(s, c);

	c->ring_full = ring_full_of(s, lost);
	c->skipped = above(s->account.missed.skipped, c->ring_full);
	c->unfinished = unfinished_of_groups(s, c);
}

static void count_groups_and_cpus(struct perf_stream *s, struct perf_stream_counts *c)
{
	struct bpf_missed_ticks missed;
	uint64_t lost = sum_groups(s, c);

	c->ring_full = ring_full_of(s, lost);
	c->skipped = above(s->account.missed.skipped, c->ring_full);
	bpf_sampler_missed_ticks(s->o.bpf, &missed);
	if (s->form.kernel) /* otherwise a CPU event's ticks in the kernel are not due */
		c->skipped += missed.selected;
}

void stream_account_choose(struct perf_stream *s)
{
	struct stream_account *a = &s->account;
	bool bpf = s->o.bpf;

	if (s->o.dynamic && bpf)
		a->count = s->cpu_period_ns ? count_groups_and_cpus : count_groups_by_runtime;
	else if (s->o.dynamic)
		a->count = count_groups_by_total;
	else if (s->o.cpus)
		a->count = count_own_and_cpus;
	else if (s->o.all)
		a->count = bpf ? count_cpus_by_grid : count_cpus_by_sample;
	else if (bpf)
		a->count = count_threads_by_runtime;
	else
		a->count = s->form.read ? count_threads_by_sample : count_threads_by_total;
	a->records.gaps = s->form.read || bpf;
}

/* ---- reading ---- */

static void count_late(const struct perf_stream *s, struct perf_stream_counts *c, uint32_t sampler)
{
	uint64_t counts[WAIT_RESULT_COUNT];

	bpf_waits_counts(s->o.bpf, sampler, counts);
	c->late[sampler] = counts[WAIT_LATE] + counts[WAIT_NO_ROOM];
	c->late_weight[sampler] = counts[WAIT_UNREAD];
}

static void count_hits(struct perf_stream *s, struct perf_stream_counts *c)
{
	struct stream_account *a = &s->account;
	uint64_t counts[PROBE_RESULT_COUNT];

	bpf_probes_counts(s->o.bpf, counts);
	c->hits.unwalked = counts[PROBE_BUSY] + counts[PROBE_NOT_WALKED];
	if (s->o.hits_beside) {
		c->hits.unsent = counts[PROBE_RING_FULL];
		read_hooks(s, counts);
		c->hits.hooks = counts[PROBE_BUSY] + counts[PROBE_NOT_WALKED] +
				counts[PROBE_RING_FULL];
	}
	raise_to(&c->hits.unwalked, &a->reported.hits.unwalked);
	raise_to(&c->hits.unsent, &a->reported.hits.unsent);
	raise_to(&c->hits.hooks, &a->reported.hits.hooks);
}

void stream_account_remove_group(struct perf_stream *s, struct event_group *g)
{
	event_group_read(s, g);
	count_unread(s);
	s->account.removed.count_ns += g->cpus ? 0 : g->count_ns;
	s->account.removed.lost += g->lost;
	s->account.removed.missing += missing_in_group(g);
}

void perf_stream_counts(struct perf_stream *s, struct perf_stream_counts *c)
{
	struct stream_account *a = &s->account;

	read_sources(s);
	*c = a->records;
	c->gaps &= !a->missed.broken;
	a->count(s, c);
	for (uint32_t i = 0; i < s->o.wait_periods.n; i++) {
		count_late(s, c, i); /* counts may not be readable */
		raise_to(&c->late[i], &a->reported.late[i]);
		raise_to(&c->late_weight[i], &a->reported.late_weight[i]);
	}
	if (s->o.hit_period)
		count_hits(s, c);
	raise_to(&c->ring_full, &a->reported.ring_full);
	raise_to(&c->skipped, &a->reported.skipped);
	raise_to(&c->unfinished, &a->reported.unfinished);
}

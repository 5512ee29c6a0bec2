/* SPDX-License-Identifier: Apache-2.0 */
/* Records of all CPUs, in the order of their time, to the handlers. */
#include <linux/perf_event.h>
#include <stddef.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "bpf/sampler_events.h"
#include "bpf/waits.h"
#include "events/internal/perf_stream_state.h"
#include "events/internal/ring_queue.h"
#include "events/internal/stream_cpus.h"

/* A record becomes visible a little after its time was taken (a virtual CPU may be stopped in
 * between). So records are due when they are older than SLACK_NS. All are due when a ring is fuller
 * than HURRY; and all that are older than the reading when the BPF programs have met a process that
 * they do not know yet, since the process may end soon. These samples are right too: the records
 * that a sample depends on (its thread's fork, exec and mappings) were written before the thread
 * went on, so they are in the rings if the sample is older than the reading. */
#define SLACK_NS 20000000u
#define HURRY 0.5
/* A drain that is not final ends after this time, so that the rest of the agent does not wait. */
#define SLICE_NS 20000000u
#define SLICE_CHECK 16u /* records between two looks at the clock */
#define FOLLOW_CPUS_NS 1000000000u

static bool is_own(const struct perf_stream *s, uint32_t tid)
{
	for (uint32_t i = 0; i < s->nown; i++)
		if (s->own[i] == (pid_t)tid)
			return true;
	return false;
}

/* A thread began or ended. Beside CPU events a thread is counted from the first tick of its own
 * events on. */
static void note_thread(struct perf_stream *s, const struct perf_event_header *h)
{
	const uint32_t *ids = (const void *)(h + 1); /* pid, ppid, tid, ptid */

	if (h->size < sizeof(*h) + 16)
		return;
	if (h->type == PERF_RECORD_FORK)
		s->account.own.forked |= is_own(s, ids[3]);
	if (h->type == PERF_RECORD_FORK && !s->cpu_period_ns)
		missed_ticks_begin(&s->account.missed, ids[2]);
	else
		missed_ticks_end(&s->account.missed, ids[2]);
}

/* A thread's exec takes its own events from it. */
static void note_exec(struct perf_stream *s, const struct perf_event_header *h)
{
	const uint32_t *ids = (const void *)(h + 1); /* pid, tid */

	if (!(h->misc & PERF_RECORD_MISC_COMM_EXEC) || h->size < sizeof(*h) + 8)
		return;
	s->account.own.execed |= is_own(s, ids[1]);
}

static void note_group(struct perf_stream *s, struct event_sample *e)
{
	struct event_group *g = hashmap_get(&s->group_by_event, e->id);

	e->s.group = g ? g->number : 0;
	if (g)
		g->samples++;
}

/* A record of the BPF sampler, whose kind and size were checked, with the time and CPU by perf. */
struct sent {
	uint64_t time;
	uint32_t cpu;
	union record *r;
};

/* Counts the tick's CPU time by thread. The programs count the ticks of the CPUs' own events. Where
 * only a part of the ticks is kept, the others are not missed. */
static void note_runtime(struct perf_stream *s, const struct sent *at)
{
	const struct record_tick *t = &at->r->tick;

	if (t->head.flags & (RECORD_CPU_EVENT | RECORD_CHOSEN | RECORD_HIT))
		return;
	s->account.own.samples++;
	s->account.own.sampled_ns += t->period;
	s->account.own.thinned |= t->head.share != 0;
	if (t->head.share != s->account.share)
		missed_ticks_restart(&s->account.missed);
	s->account.share = t->head.share;
	if (t->head.share)
		return;
	missed_ticks_runtime(&s->account.missed, t->head.tid, at->cpu, t->runtime, t->period);
}

/* Gives the sample the return addresses that the program sent before it. */
static void take_returns(struct stream_cpu *c, struct sample *s)
{
	const struct record_returns *r = &c->returns;

	if (r->n && r->tick.head.tid == (uint32_t)s->tid)
		s->returns = (struct sample_returns){r->page, r->at, r->n};
}

/* Hands over the labels of a sample that is handed over next: ids are set as in set_ids(). */
static void dispatch_labels(struct perf_stream *s, const struct stream_cpu *c, uint32_t tid,
			    const struct perf_stream_handlers *on)
{
	if (c->labels.head.tid != tid)
		s->account.records.invalid++;
	else if (on->labels)
		on->labels(on->arg, &c->labels);
}

static bool dispatch_copy(struct perf_stream *s, struct stream_cpu *c, const struct sent *at,
			  const struct perf_stream_handlers *on)
{
	struct sample sample;

	if (!bpf_record_sample(&s->reader, at->time, at->cpu, &sample))
		return false;
	note_runtime(s, at);
	s->account.records.samples++;
	take_returns(c, &sample);
	on->sample(on->arg, &sample);
	bpf_record_wipe(&s->reader, &sample);
	return true;
}

static bool dispatch_stack(struct perf_stream *s, const struct sent *at,
			   const struct perf_stream_handlers *on)
{
	const struct record_stack *r = &at->r->stack;

	if (r->nkernel > RECORD_MAX_KERNEL || r->nkernel > record_words(r))
		return false;
	note_runtime(s, at);
	s->account.records.samples++;
	s->account.records.walked++;
	on->stack(on->arg, at->time, at->cpu, r);
	return true;
}

static bool dispatch_continuation(const struct sent *at, const struct perf_stream_handlers *on)
{
	const struct record_stack *r = &at->r->stack;

	const uint32_t end = r->tick.head.flags & RECORD_PART ? 2 : 0;

	if (r->nkernel > RECORD_MAX_KERNEL || record_words(r) <= r->nkernel + end ||
	    (end && r->tick.head.flags & RECORD_OUTER))
		return false;
	on->continuation(on->arg, at->time, r);
	return true;
}

static bool keep_returns(struct stream_cpu *c, const struct record_returns *r)
{
	c->returns.n = 0;
	if (r->n > (r->tick.head.size - RECORD_RETURNS_HEAD) / sizeof(r->at[0]))
		return false;
	memcpy(&c->returns, r, r->tick.head.size);
	return true;
}

static bool keep_labels(struct stream_cpu *c, const struct record_labels *r)
{
	c->labels.head.tid = 0; /* of no sample */
	if (!bpf_record_has_texts(r))
		return false;
	memcpy(&c->labels, r, r->head.size);
	return true;
}

static bool dispatch_emission(const struct sent *at, const struct perf_stream_handlers *on)
{
	const struct record_emission *r = &at->r->emission;

	if (r->bytes > r->head.size - sizeof(*r))
		return false;
	on->emission(on->arg, at->time, r);
	return true;
}

/* The programs write ids of the first pid namespace; perf has those of ours. */
static void set_ids(struct record_head *r, const uint32_t ids[2])
{
	if (ids[0] != UINT32_MAX)
		r->pid = ids[0];
	if (ids[1] != UINT32_MAX)
		r->tid = ids[1];
}

/* Hands a record over. false: it contradicts itself. */
static bool dispatch_kind(struct perf_stream *s, struct stream_cpu *c, const struct sent *at,
			  const struct perf_stream_handlers *on)
{
	union record *r = at->r;

	if (r->head.flags & RECORD_LABELED && bpf_record_is_sample(r, sizeof(r->head)))
		dispatch_labels(s, c, r->head.tid, on);
	switch (r->head.kind) {
	case RECORD_STACK:
		return dispatch_stack(s, at, on);
	case RECORD_COPY:
		return dispatch_copy(s, c, at, on);
	case RECORD_EMISSION:
		return dispatch_emission(at, on);
	case RECORD_CONTINUATION:
		return dispatch_continuation(at, on);
	case RECORD_RETURNS:
		return keep_returns(c, &r->returns);
	case RECORD_LABELS:
		return keep_labels(c, &r->labels);
	case RECORD_MISSED:
		c->out.refused = true;
		note_runtime(s, at);
		s->account.records.samples++;
		on->missed(on->arg, at->time, at->cpu, &r->missed);
		return true;
	default: /* RECORD_DEFERRED */
		note_runtime(s, at);
		c->deferred.tid = r->head.tid;
		c->deferred.share = r->head.share;
		c->deferred.period = r->tick.period;
		c->deferred.stop = r->deferred.stop;
		c->deferred.labeled = r->head.flags & RECORD_LABELED;
		return true;
	}
}

/* A record that the BPF sampler sent. */
static void dispatch_record(struct perf_stream *s, struct stream_cpu *c,
			    const struct perf_event_header *h,
			    const struct perf_stream_handlers *on)
{
	static const struct record_labels none;
	struct sent at = {.time = event_time(h), .r = &s->reader.record};
	uint32_t len, ids[2];
	const void *from = event_parse_output(h, &len, &at.cpu, ids);

	if (!from || !bpf_record_read(&s->reader.record, from, len)) {
		s->account.records.invalid++;
		return;
	}
	set_ids(&s->reader.record.head, ids);
	if (!dispatch_kind(s, c, &at, on)) {
		s->account.records.invalid++;
		if (at.r->head.flags & RECORD_LABELED && on->labels)
			on->labels(on->arg, &none); /* not of the next sample */
	}
	if (at.r->head.kind != RECORD_RETURNS && at.r->head.kind != RECORD_DEFERRED)
		c->returns.n = 0;
}

static void dispatch_sample(struct perf_stream *s, struct stream_cpu *c,
			    const struct perf_event_header *h,
			    const struct perf_stream_handlers *on)
{
	struct event_sample e;

	if (!event_parse_sample(&s->form, h, &e))
		return;
	s->account.records.samples++;
	if (s->form.read)
		missed_ticks_count(&s->account.missed, e.id << 32 ^ (uint64_t)e.s.tid, e.count_ns,
				   s->o.period_ns);
	note_group(s, &e);
	/* The programs have chosen the tick by its process's rate, as those that they send. */
	if (c->deferred.tid == (uint32_t)e.s.tid) {
		e.s.group = 0;
		e.s.period = c->deferred.period;
		e.s.stop = c->deferred.stop;
		e.s.share = c->deferred.share;
		if (c->deferred.labeled)
			dispatch_labels(s, c, c->deferred.tid, on);
	}
	c->deferred.tid = 0;
	take_returns(c, &e.s);
	on->sample(on->arg, &e.s);
	c->returns.n = 0;
}

static void dispatch(struct perf_stream *s, struct stream_cpu *c, const struct perf_event_header *h,
		     const struct perf_stream_handlers *on)
{
	const uint64_t *body = (const void *)(h + 1);

	switch (h->type) {
	case PERF_RECORD_COMM:
		note_exec(s, h);
		event_parse_sideband(h, on);
		break;
	case PERF_RECORD_SAMPLE:
		if (stream_cpu_is_output(c, h))
			dispatch_record(s, c, h, on);
		else
			dispatch_sample(s, c, h, on);
		break;
	case PERF_RECORD_LOST: /* id, lost */
		if (h->size < sizeof(*h) + 2 * sizeof(*body))
			break;
		if (!c->out.ring.page || body[0] != c->output_id)
			on->lost(on->arg, body[1]);
		if (!s->form.lost)
			s->account.records.ring_full += body[1];
		break;
	case PERF_RECORD_THROTTLE:
		s->account.records.throttled++;
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		s->account.threads.forked += h->type == PERF_RECORD_FORK;
		s->account.threads.ended += h->type == PERF_RECORD_EXIT;
		if (s->o.bpf && !s->o.all)
			note_thread(s, h);
		event_parse_sideband(h, on);
		break;
	default:
		event_parse_sideband(h, on);
	}
}

/* Refreshes all rings. Returns whether one is so full that nothing may wait. */
static bool refresh_rings(struct perf_stream *s)
{
	bool hurry = false;

	for (uint32_t i = 0; i < s->ncpus; i++) {
		if (s->cpus[i].ring_fd < 0)
			continue;
		ring_refresh(&s->cpus[i].ring);
		hurry |= ring_full(&s->cpus[i].ring) > HURRY;
		hurry |= output_ring_refresh(&s->cpus[i].out) > HURRY;
	}
	return hurry;
}

/* Queues the rings of all CPUs. */
static struct ring_queue queue_rings(struct perf_stream *s)
{
	struct ring_queue q = {0};

	for (uint32_t i = 0; i < s->ncpus; i++) {
		struct stream_cpu *c = &s->cpus[i];

		if (c->ring_fd < 0)
			continue;
		ring_queue_add(&q, &c->ring);
		if (c->out.ring.page)
			ring_queue_add(&q, &c->out.ring);
		if (c->out.before.page)
			ring_queue_add(&q, &c->out.before);
	}
	return q;
}

static struct stream_cpu *cpu_of(const struct perf_stream *s, const struct ring *r)
{
	return &s->cpus[(size_t)((const char *)r - (const char *)s->cpus) / sizeof(*s->cpus)];
}

/* The records that a drain hands over. */
enum drain_mode {
	DRAIN_DUE,   /* that no older record of another CPU can precede */
	DRAIN_NOW,   /* that are older than the drain */
	DRAIN_FINAL, /* all */
};

#define FIRST_LOOK_NS 500000u
#define LAST_LOOK_NS 4000000u

/* Whether the BPF programs have requested this reading. A new program maps its libraries in the
 * next moments, so after a wake the rings are read some more times, each after twice the time. */
static bool is_at_once(struct perf_stream *s)
{
	uint64_t expired, was = s->look.ns;

	if (!s->o.bpf)
		return false;
	if (bpf_sampler_take_wake(s->o.bpf))
		s->look.ns = FIRST_LOOK_NS;
	else if (!was || read(s->look.fd, &expired, sizeof(expired)) != sizeof(expired))
		return false;
	else
		s->look.ns = was < LAST_LOOK_NS && bpf_sampler_may_wake(s->o.bpf) ? was * 2 : 0;
	s->look.is_new = true;
	return true;
}

/* Hands over nothing newer than limit. */
static void drain(struct perf_stream *s, const struct perf_stream_handlers *on,
		  enum drain_mode mode, uint64_t limit)
{
	bool final = mode == DRAIN_FINAL;
	bool now = is_at_once(s) || mode == DRAIN_NOW;
	uint64_t began = clock_now(), due = began - SLACK_NS, until;
	struct ring_queue q;
	struct ring *r;
	uint32_t n = 0;

	if (!final && s->enabled && due - s->cpus_read_ns > FOLLOW_CPUS_NS && stream_cpus_follow(s))
		on->lost(on->arg, 0);
	now |= refresh_rings(s);
	until = final ? UINT64_MAX : now ? began : due;
	until = until < limit ? until : limit;
	s->behind = false;
	q = queue_rings(s);
	while ((r = ring_queue_oldest(&q, until))) {
		s->behind = !final && ++n % SLICE_CHECK == 0 && clock_now() - began > SLICE_NS;
		if (s->behind)
			break;
		dispatch(s, cpu_of(s, r), ring_peek(r), on);
		ring_queue_next(&q);
	}
	if (s->behind)
		limit = r->queued.time - 1;
	s->horizon_ns = due < limit ? due : limit;
	if (perf_stream_has_waits(s))
		bpf_waits_make_room(s->o.bpf);
	if (s->o.bpf && mode != DRAIN_NOW) /* which follows a drain that has set it */
		stream_cpus_set_copy_budget(s, clock_now() - began);
}

void perf_stream_drain(struct perf_stream *s, const struct perf_stream_handlers *on, bool final)
{
	drain(s, on, final ? DRAIN_FINAL : DRAIN_DUE, UINT64_MAX);
}

void perf_stream_drain_until(struct perf_stream *s, const struct perf_stream_handlers *on,
			     uint64_t until)
{
	drain(s, on, DRAIN_DUE, until);
}

void perf_stream_drain_now(struct perf_stream *s, const struct perf_stream_handlers *on,
			   uint64_t until)
{
	drain(s, on, DRAIN_NOW, until);
}

bool perf_stream_looks_again(const struct perf_stream *s)
{
	return s->look.ns;
}

void perf_stream_end_looks(struct perf_stream *s)
{
	const struct itimerspec never = {0};

	if (s->look.is_set)
		timerfd_settime(s->look.fd, 0, &never, NULL);
	s->look.is_set = s->look.is_new = false;
	s->look.ns = 0;
}

void perf_stream_look_again(struct perf_stream *s)
{
	const struct itimerspec next = {.it_value.tv_nsec = (long)s->look.ns};

	if (s->look.is_new && s->look.ns)
		s->look.is_set = !timerfd_settime(s->look.fd, 0, &next, NULL);
	s->look.is_new = false;
}

bool perf_stream_is_behind(const struct perf_stream *s)
{
	return s->behind;
}

uint64_t perf_stream_horizon(const struct perf_stream *s)
{
	return s->horizon_ns;
}

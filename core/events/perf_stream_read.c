/* SPDX-License-Identifier: Apache-2.0 */
/* Records of all CPUs in the order of their time, each handed to whom it is for. */
#include <linux/perf_event.h>
#include <string.h>

#include "base/clock.h"
#include "bpf/sampler_events.h"
#include "events/perf_stream_state.h"

/* A record becomes visible a little after its time is taken (the virtual CPU may be stopped in
 * between): so long we wait for other CPUs' records, unless a ring fills up. */
#define SLACK_NS 20000000u
#define HURRY 0.5
#define LOOK_NS 1000000000u /* at which CPUs are online */

/* A thread began or ended. With the CPUs' own events one is counted once it ticks by its own. */
static void note_thread(struct perf_stream *s, const struct perf_event_header *h)
{
	const uint32_t *ids = (const void *)(h + 1); /* pid, ppid, tid, ptid */

	if (h->size < sizeof(*h) + 16)
		return;
	if (h->type == PERF_RECORD_FORK && !s->cpus_ns)
		missed_ticks_begin(&s->tallies, ids[2]);
	else
		missed_ticks_end(&s->tallies, ids[2]);
}

static void note_group(struct perf_stream *s, struct event_sample *e)
{
	struct group *g = s->ids.n ? hashmap_get(&s->ids, e->id) : NULL;

	e->s.group = g ? g->number : 0;
	if (g)
		g->samples++;
}

/* Writes each page of the copy to its offset in s->stack; absent pages are zero. Returns the bytes
 * up to the end of the last present page. */
static uint32_t place_pages(struct perf_stream *s, const struct record_copy *copy)
{
	uint64_t sp = copy->regs[FUSEE_X86_RSP];
	uint32_t from = 0, to = 0, end = 0;

	for (uint32_t page = 0; page < RECORD_COPY_PAGES && from < copy->bytes; page++) {
		uint32_t n = RECORD_PAGE - (uint32_t)((sp + to) % RECORD_PAGE);

		if (copy->holes >> page & 1) {
			memset(s->stack + to, 0, n);
		} else {
			n = n < copy->bytes - from ? n : copy->bytes - from;
			memcpy(s->stack + to, copy->stack + from, n);
			from += n;
			end = to + n;
		}
		to += n;
	}
	return end;
}

/* Kernel frames that come from a callchain begin with a marker of perf. */
static void set_kernel_frames(const struct record_copy *copy, struct sample *to)
{
	bool marked = copy->nkernel && copy->kernel[0] >= (uint64_t)PERF_CONTEXT_MAX;

	to->kernel = (const uint64_t *)copy->kernel + marked;
	to->nkernel = copy->nkernel - marked;
}

/* A record of the BPF sampler, checked for its kind and size, and what perf says of it. */
struct sent {
	uint64_t time;
	uint32_t cpu;
	union record *r;
};

/* Counts the tick's CPU time by thread. The programs count the ticks of the CPUs' own events. */
static void note_runtime(struct perf_stream *s, const struct sent *at)
{
	const struct record_tick *t = &at->r->tick;

	if (!(t->head.flags & RECORD_CPU_EVENT))
		missed_ticks_runtime(&s->tallies, t->head.tid, at->cpu, t->runtime, t->period);
}

static bool dispatch_copy(struct perf_stream *s, const struct sent *at,
			  const struct perf_stream_handlers *on)
{
	const struct record_copy *r = &at->r->copy;
	struct sample sample = {.pid = (pid_t)r->tick.head.pid,
				.tid = (pid_t)r->tick.head.tid,
				.cpu = at->cpu,
				.time = at->time,
				.period = r->tick.period,
				.abi = 2,
				.stop = r->stop,
				.stack = s->stack};

	if (r->bytes > r->tick.head.size - RECORD_COPY_HEAD || r->bytes > RECORD_MAX_COPY ||
	    r->nkernel > RECORD_MAX_KERNEL)
		return false;
	memcpy(sample.regs, r->regs, sizeof(sample.regs));
	sample.stack_len = place_pages(s, r);
	sample.holes = r->holes;
	sample.stack_full = r->bytes == r->limit;
	set_kernel_frames(r, &sample);
	if (!r->bytes && sample.nkernel)
		sample.abi = 0; /* the process is ending, without user memory: a complete stack */
	note_runtime(s, at);
	s->counts.samples++;
	on->sample(on->arg, &sample);
	return true;
}

static bool dispatch_stack(struct perf_stream *s, const struct sent *at,
			   const struct perf_stream_handlers *on)
{
	const struct record_stack *r = &at->r->stack;

	if (r->nkernel > RECORD_MAX_KERNEL || r->nkernel > record_words(r))
		return false;
	note_runtime(s, at);
	s->counts.samples++;
	s->counts.walked++;
	on->stack(on->arg, at->time, at->cpu, r);
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

/* The least and the largest size of a record of this kind. false: an unknown kind. */
static bool size_of_kind(uint32_t kind, uint32_t *least, uint32_t *most)
{
	static const struct {
		uint32_t least, most;
	} sizes[] = {
		[RECORD_STACK] = {RECORD_STACK_HEAD, sizeof(struct record_stack)},
		[RECORD_COPY] = {RECORD_COPY_HEAD, sizeof(struct record_copy)},
		[RECORD_DEFERRED] = {sizeof(struct record_deferred),
				     sizeof(struct record_deferred)},
		[RECORD_MISSED] = {sizeof(struct record_missed), sizeof(struct record_missed)},
		[RECORD_EMISSION] = {sizeof(struct record_emission), sizeof(union record)},
	};

	if (kind >= sizeof(sizes) / sizeof(*sizes) || !sizes[kind].least)
		return false;
	*least = sizes[kind].least;
	*most = sizes[kind].most;
	return true;
}

bool perf_stream_read_record(union record *r, const void *from, uint32_t len)
{
	uint32_t least, most;

	if (len < sizeof(r->head))
		return false;
	memcpy(&r->head, from, sizeof(r->head));
	if (!size_of_kind(r->head.kind, &least, &most) || r->head.size < least ||
	    r->head.size > most || r->head.size > len)
		return false;
	memcpy(r, from, r->head.size);
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
static bool dispatch_kind(struct perf_stream *s, struct cpu *c, const struct sent *at,
			  const struct perf_stream_handlers *on)
{
	union record *r = at->r;

	switch (r->head.kind) {
	case RECORD_STACK:
		return dispatch_stack(s, at, on);
	case RECORD_COPY:
		return dispatch_copy(s, at, on);
	case RECORD_EMISSION:
		return dispatch_emission(at, on);
	case RECORD_MISSED:
		note_runtime(s, at);
		s->counts.samples++;
		on->missed(on->arg, at->time, at->cpu, &r->missed);
		return true;
	default: /* RECORD_DEFERRED */
		note_runtime(s, at);
		c->deferred.tid = r->head.tid;
		c->deferred.stop = r->deferred.stop;
		return true;
	}
}

/* A record that the BPF sampler sent. */
static void dispatch_record(struct perf_stream *s, struct cpu *c, const struct perf_event_header *h,
			    const struct perf_stream_handlers *on)
{
	struct sent at = {.time = event_time(h), .r = &s->record};
	uint32_t len, ids[2];
	const void *from = event_parse_output(h, &len, &at.cpu, ids);

	if (!from || !perf_stream_read_record(&s->record, from, len)) {
		s->counts.invalid++;
		return;
	}
	set_ids(&s->record.head, ids);
	s->counts.invalid += !dispatch_kind(s, c, &at, on);
}

static void dispatch_sample(struct perf_stream *s, struct cpu *c, const struct perf_event_header *h,
			    const struct perf_stream_handlers *on)
{
	struct event_sample e;

	if (!event_parse_sample(&s->form, h, &e))
		return;
	s->counts.samples++;
	if (s->form.read)
		missed_ticks_count(&s->tallies, e.id << 32 ^ (uint64_t)e.s.tid, e.value,
				   s->o.period_ns);
	note_group(s, &e);
	if (c->deferred.tid == (uint32_t)e.s.tid)
		e.s.stop = c->deferred.stop;
	c->deferred.tid = 0;
	on->sample(on->arg, &e.s);
}

static void dispatch(struct perf_stream *s, struct cpu *c, const struct perf_event_header *h,
		     const struct perf_stream_handlers *on)
{
	const uint64_t *body = (const void *)(h + 1);

	switch (h->type) {
	case PERF_RECORD_SAMPLE:
		if (c->output >= 0 &&
		    (event_sample_id(h) == c->output_id || event_sample_id(h) == c->old_output_id))
			dispatch_record(s, c, h, on);
		else
			dispatch_sample(s, c, h, on);
		break;
	case PERF_RECORD_LOST: /* id, lost */
		on->lost(on->arg, body[1]);
		if (!s->form.lost)
			s->counts.ring_full += body[1];
		break;
	case PERF_RECORD_THROTTLE:
		s->counts.throttled++;
		break;
	default:
		if (s->o.bpf && !s->o.all &&
		    (h->type == PERF_RECORD_FORK || h->type == PERF_RECORD_EXIT))
			note_thread(s, h);
		event_parse_sideband(h, on);
	}
}

/* limit: nothing newer is handed over. */
static void drain(struct perf_stream *s, const struct perf_stream_handlers *on, bool final,
		  uint64_t limit)
{
	uint64_t began = clock_now(), until = began - SLACK_NS, horizon = until;

	if (!final && s->enabled && until - s->looked > LOOK_NS && perf_stream_follow_cpus(s))
		on->lost(on->arg, 0);
	for (uint32_t i = 0; i < s->ncpus; i++) {
		if (s->cpus[i].fd < 0)
			continue;
		ring_refresh(&s->cpus[i].ring);
		if (ring_full(&s->cpus[i].ring) > HURRY)
			until = UINT64_MAX;
	}
	if (final)
		until = UINT64_MAX;
	until = until < limit ? until : limit;
	for (;;) {
		struct cpu *oldest = NULL;
		uint64_t best = until;

		for (uint32_t i = 0; i < s->ncpus; i++) {
			const struct perf_event_header *h;

			if (s->cpus[i].fd < 0)
				continue;
			h = ring_peek(&s->cpus[i].ring);
			if (h && event_time(h) < best) {
				best = event_time(h);
				oldest = &s->cpus[i];
			}
		}
		if (!oldest)
			break;
		dispatch(s, oldest, ring_peek(&oldest->ring), on);
		ring_next(&oldest->ring);
		ring_release(&oldest->ring);
	}
	s->horizon = horizon < limit ? horizon : limit;
	if (s->o.bpf)
		perf_stream_ration(s, clock_now() - began);
}

void perf_stream_drain(struct perf_stream *s, const struct perf_stream_handlers *on, bool final)
{
	drain(s, on, final, UINT64_MAX);
}

void perf_stream_drain_until(struct perf_stream *s, const struct perf_stream_handlers *on,
			     uint64_t until)
{
	drain(s, on, false, until);
}

uint64_t perf_stream_horizon(const struct perf_stream *s)
{
	return s->horizon;
}

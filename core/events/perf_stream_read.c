/* SPDX-License-Identifier: Apache-2.0 */
/* Records of all CPUs in the order of their time, each handed to whom it is for. */
#include <linux/perf_event.h>
#include <string.h>

#include "base/clock.h"
#include "bpf/sampler.h"
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

/* Each page in its place, those that are not there zero; bytes up to the last one that is. */
static uint32_t place_pages(struct perf_stream *s, const struct sampler_copy *copy)
{
	uint64_t sp = copy->regs[FUSEE_X86_RSP];
	uint32_t from = 0, to = 0, end = 0;

	for (uint32_t page = 0; page < SAMPLER_COPY_PAGES && from < copy->bytes; page++) {
		uint32_t n = SAMPLE_PAGE - (uint32_t)((sp + to) % SAMPLE_PAGE);

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

/* The kernel's frames stand behind a marker of perf's where they came from a callchain. */
static void take_kernel(const struct sampler_copy *copy, struct sample *to)
{
	bool marked = copy->nkernel && copy->kernel[0] >= (uint64_t)PERF_CONTEXT_MAX;

	to->kernel = (const uint64_t *)copy->kernel + marked;
	to->nkernel = copy->nkernel - marked;
}

/* A copy of a stack that the BPF sampler made. */
static void dispatch_copy(struct perf_stream *s, const void *from, uint32_t len,
			  const struct perf_stream_walked *w, const struct perf_stream_handlers *on)
{
	const struct sampler_record *r = w->record;
	struct sampler_copy *copy = &s->copy;
	struct sample sample = {.pid = (pid_t)r->pid,
				.tid = (pid_t)r->tid,
				.cpu = w->cpu,
				.time = w->time,
				.period = r->period,
				.abi = 2,
				.cut = r->version,
				.stack = s->stack};

	if (len < SAMPLER_COPY_HEAD)
		return;
	memcpy(copy, from, len < sizeof(*copy) ? len : sizeof(*copy));
	if (copy->bytes > len - SAMPLER_COPY_HEAD || copy->bytes > SAMPLER_MAX_COPY ||
	    copy->nkernel > SAMPLER_MAX_KERNEL)
		return;
	memcpy(sample.regs, copy->regs, sizeof(sample.regs));
	sample.stack_len = place_pages(s, copy);
	sample.holes = copy->holes;
	sample.stack_full = copy->bytes == copy->limit;
	take_kernel(copy, &sample);
	if (!copy->bytes && sample.nkernel)
		sample.abi = 0; /* it ends, and its memory is gone: the kernel's frames are all */
	s->counts.samples++;
	on->sample(on->arg, &sample);
}

/* The program knows numbers of the first pid namespace, perf those of ours. */
static void take_ids(struct sampler_record *r, const uint32_t ids[2])
{
	if (ids[0] != UINT32_MAX)
		r->pid = ids[0];
	if (ids[1] != UINT32_MAX)
		r->tid = ids[1];
}

/* A record that the BPF sampler sent. */
static void dispatch_walked(struct perf_stream *s, struct cpu *c, const struct perf_event_header *h,
			    const struct perf_stream_handlers *on)
{
	struct perf_stream_walked w = {.time = event_time(h), .record = &s->record};
	struct sampler_record *r = &s->record;
	uint32_t len, ids[2];
	const void *from = event_parse_output(h, &len, &w.cpu, ids);

	if (!from || len < SAMPLER_RECORD_HEAD)
		return;
	memcpy(r, from, SAMPLER_RECORD_HEAD);
	take_ids(r, ids);
	if (r->nuser == SAMPLER_COPIED) {
		if (!r->base)
			missed_ticks_runtime(&s->tallies, r->tid, w.cpu, r->runtime, r->period);
		dispatch_copy(s, from, len, &w, on);
		return;
	}
	memcpy(r->frames, (const char *)from + SAMPLER_RECORD_HEAD,
	       (len < sizeof(*r) ? len : sizeof(*r)) - SAMPLER_RECORD_HEAD);
	if (r->nkernel > SAMPLER_MAX_KERNEL || r->nuser > SAMPLER_MAX_WORDS - r->nkernel ||
	    SAMPLER_RECORD_HEAD + 8 * (r->nkernel + r->nuser) > len)
		return;
	if (r->left == SAMPLER_EMISSIONS) {
		on->emitted(on->arg, &w);
		return;
	}
	if (!r->base) /* which the program counts */
		missed_ticks_runtime(&s->tallies, r->tid, w.cpu, r->runtime, r->period);
	if (r->left && !(r->left & SAMPLER_NO_COPY)) {
		c->cut.tid = r->tid;
		c->cut.by = r->version;
		return;
	}
	w.period = r->period;
	s->counts.samples++;
	s->counts.walked += !r->left;
	on->walked(on->arg, &w);
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
	if (c->cut.tid == (uint32_t)e.s.tid)
		e.s.cut = c->cut.by;
	c->cut.tid = 0;
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
			dispatch_walked(s, c, h, on);
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

/* SPDX-License-Identifier: Apache-2.0 */
/* Samples with stack copies are routed, unwound in user space and added to collectors, or wait
 * until the worker has made the tables that they need. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "pipeline/state.h"

/* The longest time that a sample waits for tables and steps. */
#define WAIT_NS 20000000000ull
#define SLICE_NS 5000000ull      /* of pipeline_retry() */
#define READING_NS 1000000000ull /* the longest time that the last samples wait for mappings */
#define POLL_MS 50

void pipeline_clear_walk(struct pipeline *p, enum loss_reason reason)
{
	struct walk *w = &p->walk;

	w->n = w->guessed = 0;
	w->passed = w->continued = false;
	w->reason = reason ? loss_text(reason) : NULL;
	w->waiting = NULL;
}

struct process *pipeline_begin_sample(struct pipeline *p, const struct sample *s,
				      struct pipeline_route *route)
{
	struct process *proc;

	*route = (struct pipeline_route){.slots = 1};
	if (p->o.route && !p->o.route(p->o.arg, s, route)) {
		p->stats.unrouted++;
		return NULL;
	}
	p->time = s->time;
	proc = process_get(p->processes, s->pid);
	if (!proc) {
		p->stats.weight_ns += route->weight_ns ? route->weight_ns : s->period;
		loss_account_add(&p->account, LOSS_NO_MEMORY, 1);
		return NULL;
	}
	process_ran(proc, s->tid);
	kernel_view_sampled(&p->views, proc);
	return proc;
}

/* Reports code without a file that the walk stepped, so that unwinders can claim it and the kernel
 * can step it too. */
static void publish_stepped(struct pipeline *p, struct process *proc)
{
	for (uint32_t i = 0; p->views.bpf && i < p->walk.n; i++) {
		const struct walk_frame *f = &p->walk.frames[i];
		const struct process_mapping *m = f->kind == FRAME_ANONYMOUS
							  ? process_mapping(proc, f->addr)
							  : NULL;

		if (m && !m->file && claims_were_offered(p->claims, proc->id))
			kernel_view_stepped(&p->views, proc, m);
	}
}

/* Whether an unknown mapping has the code. The sampled address is code for certain; a return
 * address may just be wrong, if all mappings are known. */
static bool lacks_mapping(const struct pipeline *p, const struct followed *f, uint64_t time)
{
	return p->walk.reason == loss_text(LOSS_CODE_NOT_MAPPED) ||
	       (p->walk.reason == loss_text(LOSS_CALLER_NOT_CODE) &&
		pipeline_is_unread(p, f, time));
}

/* Makes pipeline.walk the stack of a sample. true: the sample must wait. */
static bool walk(struct pipeline *p, struct process *proc, const struct sample *s, bool wait,
		 struct walk_steps **steps)
{
	const struct followed *f = followed_of(proc);

	if (f->paused) {
		pipeline_clear_walk(p, LOSS_TOO_MANY_MAPPINGS);
		return false;
	}
	walk_stack(&p->walker, proc, s, wait, steps, &p->walk);
	if (wait && lacks_mapping(p, f, s->time) && pipeline_read_unmapped(p, proc, s->time)) {
		if (f->reading)
			return true;
		walk_stack(&p->walker, proc, s, wait, steps, &p->walk);
	}
	if (lacks_mapping(p, f, s->time) && pipeline_is_unread(p, f, s->time))
		p->walk.reason = loss_text(LOSS_MAPPINGS_NOT_READ);
	return p->walk.waiting;
}

/* Sets what the sample of pipeline.walk waits for. */
static void set_awaited(const struct pipeline *p, struct waiting *w)
{
	w->file = p->walk.waiting ? p->walk.waiting->id : 0;
	w->unmapped = !p->walk.waiting;
}

/* It waited for the file `before` until now; 0: for none. */
static void count_awaited(struct pipeline *p, uint32_t before)
{
	if (p->walk.waiting && p->walk.waiting->id != before)
		files_await(p->files, p->walk.waiting->id);
}

/* A sample that was routed. */
static void take_sample(struct pipeline *p, struct process *proc, const struct sample *s,
			const struct pipeline_route *route)
{
	struct walk_steps *steps = NULL;
	struct waiting *w;
	const char *comm;

	pipeline_scan_if_due(p, proc);
	comm = process_comm(p->processes, proc, s->tid);
	if (walk(p, proc, s, true, &steps)) {
		count_awaited(p, 0);
		w = waiting_add(&p->waiting, proc, &followed_of(proc)->waiting_bytes, s, route,
				comm, NULL);
		if (w) {
			w->steps = steps;
			set_awaited(p, w);
			return;
		}
		walk(p, proc, s, false, &steps);
	}
	walk_steps_release(steps);
	publish_stepped(p, proc);
	pipeline_deliver(p, proc, s, route, comm, proc);
}

static void on_sample(void *arg, const struct sample *s)
{
	struct sample_continuation continuations[SAMPLE_CONTINUATIONS];
	struct pipeline *p = arg;
	struct pipeline_route route;
	struct process *proc = pipeline_begin_sample(p, s, &route);
	struct sample with = *s;

	with.ids = preceding_take_ids(&p->preceding);
	if (p->preceding.unrecorded == s->tid)
		p->preceding.unrecorded = 0;
	preceding_take(&p->preceding, s, proc ? proc->id : 0, continuations, &with.continuations.n);
	with.continuations.at = continuations;
	p->stats.new_code += proc != NULL;
	if (proc)
		take_sample(p, proc, &with, &route);
	for (uint32_t i = 0; i < with.continuations.n; i++)
		free((void *)continuations[i].frames);
}

/* ---- samples that wait ---- */

static bool walk_waiting(struct pipeline *p, struct waiting *w, bool wait)
{
	pipeline_settle_texts(p, w->process);
	if (walk(p, w->process, &w->sample, wait, &w->steps)) {
		count_awaited(p, w->file);
		set_awaited(p, w);
		return false;
	}
	pipeline_deliver(p, w->process, &w->sample, &w->route, w->comm, w->process);
	followed_of(w->process)->waiting_bytes -= w->bytes;
	return true;
}

/* What has changed since the last try, and the time from which samples do not wait any more. */
struct retry {
	struct pipeline *pipeline;
	bool files;
	bool made; /* code made at run time was read again */
	uint64_t oldest_ns;
	uint64_t until; /* further samples wait for the next call */
};

static bool is_pending(const struct pipeline *p, uint32_t file)
{
	const struct file *f = file && file < p->files->n ? p->files->all[file] : NULL;

	return f && files_is_awaited(f);
}

/* Whether the data for the sample has not arrived yet. */
static bool is_early(const struct retry *r, const struct waiting *w)
{
	if (w->unmapped)
		return followed_of(w->process)->reading;
	if (w->steps)
		return w->steps->pending;
	return !r->files || is_pending(r->pipeline, w->file);
}

static bool retry(void *arg, struct waiting *w)
{
	const struct retry *r = arg;
	struct pipeline *p = r->pipeline;
	bool old = w->sample.time < r->oldest_ns;

	if (w->walk.over)
		return (old || r->made) && pipeline_retry_made(p, w, old);
	if (!old && is_early(r, w))
		return false;
	p->behind = p->behind || clock_now() > r->until;
	return !p->behind && walk_waiting(p, w, !old);
}

bool pipeline_awaits(const struct pipeline *p, uint32_t slot)
{
	const struct waiting *w = p->waiting.first;

	while (w && !(w->route.slots >> slot & 1))
		w = w->next;
	return w;
}

void pipeline_give_up(struct pipeline *p, uint32_t slot)
{
	for (struct waiting *w = p->waiting.first; w; w = w->next) {
		enum loss_reason why = w->walk.over  ? LOSS_MADE_CHANGED
				       : w->unmapped ? LOSS_MAPPINGS_NOT_READ
						     : LOSS_NO_TABLE_YET;

		if (!(w->route.slots >> slot & 1))
			continue;
		w->route.slots &= ~(1ull << slot);
		if (p->slots[slot])
			pipeline_collect(p, p->slots[slot], w->process, &w->sample, &w->route,
					 w->comm, NULL, why);
	}
}

static bool finish(void *arg, struct waiting *w)
{
	return w->walk.over ? pipeline_retry_made(arg, w, true) : walk_waiting(arg, w, false);
}

void pipeline_retry(struct pipeline *p)
{
	uint64_t now = clock_now();
	struct retry r = {.pipeline = p,
			  .files = p->answered.files != p->files->answers || p->scanned,
			  .made = made_code_was_read(p->made),
			  .oldest_ns = now > WAIT_NS ? now - WAIT_NS : 0,
			  .until = p->o.background ? now + SLICE_NS : UINT64_MAX};

	r.files |= p->behind;
	if (!p->waiting.first || (!r.files && !r.made && p->answered.steps == p->walker.answers &&
				  p->waiting.first->sample.time >= r.oldest_ns))
		return;
	p->behind = false;
	p->answered.files = p->files->answers;
	p->scanned = false;
	p->answered.steps = p->walker.answers;
	waiting_each(&p->waiting, retry, &r);
}

/* Samples may wait for the mappings of their process. */
static void finish_reading(struct pipeline *p)
{
	uint64_t until = clock_now() + READING_NS;

	while (p->waiting.first && pipeline_reading(p) && clock_now() < until) {
		struct pollfd e = {.fd = pipeline_mappings_fd(p), .events = POLLIN};

		if (!p->taking.answer)
			poll(&e, 1, POLL_MS);
		pipeline_take_mappings(p);
	}
}

void pipeline_finish(struct pipeline *p)
{
	uint64_t deadline = clock_now() + WAIT_NS;

	made_code_update(p->made, true);
	finish_reading(p);
	do {
		worker_wait_until(p->worker, deadline);
		made_code_update(p->made, true); /* a reading from before may have been under way */
		pipeline_retry(p);               /* may request further steps */
	} while ((p->behind || worker_pending(p->worker)) && clock_now() < deadline);
	pipeline_finish_texts(p);
	/* The second call handles stacks that the first call found to pass through code made at run
	 * time. */
	for (int i = 0; i < 2; i++)
		waiting_each(&p->waiting, finish, p);
}

void pipeline_set_sample_handlers(struct pipeline *p)
{
	p->handlers.sample = on_sample;
}

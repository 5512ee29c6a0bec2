/* SPDX-License-Identifier: Apache-2.0 */
#include "delivery/sink_window.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dict.h"
#include "base/log.h"
#include "base/metrics.h"

#define MAX_JOBS                                                                        \
	4 /* windows that may wait for their names: a worker that does not get on costs \
	     counted windows, not memory */

/* One closed window on its way. */
struct job {
	struct sink_window *window; /* NULL: it is gone */
	struct profiler_window w;
};

struct sink_window {
	struct sink_window_context on;
	const struct plan_instance *plan;
	struct delivery *delivery;
	struct loop_timer *timer;
	uint64_t every_ns; /* the timer's */
	uint32_t slot;
	struct job *jobs[MAX_JOBS];
	bool stopping;
	uint64_t deadline_ns;
};

static void count(const struct sink_window *o, const char *name, const char *help, uint64_t n)
{
	if (n)
		metric_add(name, help, METRIC_LABELS("instance", o->plan->name), n);
}

/* ---- one profile ---- */

static void add_losses(struct builder *b, const struct job *j)
{
	const struct collector *c = j->w.collector;
	const struct perf_stream_counts *before = &j->w.before, *after = &j->w.after;
	uint64_t full = after->ring_full - before->ring_full;
	/* an estimate that may fall when the last samples of a ring are read */
	uint64_t skipped = after->skipped > before->skipped ? after->skipped - before->skipped : 0;

	for (uint32_t i = 1; i < c->samples.n; i++) {
		const struct sample_key *k = c->samples.entries[i].key;

		if (k->reason)
			builder_loss(
				b,
				pipeline_reason_text(j->window->on.profiler->pipeline, k->reason),
				(int64_t)c->sums[i].count);
	}
	if (full)
		builder_loss(b, "ring full", (int64_t)full);
	if (skipped)
		builder_loss(b, "timer skipped", (int64_t)skipped);
}

static int make(struct builder *b, const struct job *j, bool one_set, uint32_t set,
		const struct fusee_profile **p)
{
	const struct sink_window *o = j->window;
	struct build_options options = {
		.period_ns = o->on.period_ns,
		.labels = o->on.labels,
		.arg = o->on.arg,
		.omit = (const char *const *)o->plan->omit,
		.one_set = one_set,
		.set = set,
	};
	char host[256] = "";
	int r = build_profile(b, j->w.collector, o->on.profiler->pipeline,
			      o->on.profiler->symbolizer, &options);

	if (r)
		return r;
	builder_profile(b)->duration_ns = j->w.end_ns - j->w.collector->start_ns;
	if (!gethostname(host, sizeof(host) - 1) && *host && !one_set)
		builder_resource(b, "host", host);
	if (!one_set)
		add_losses(b, j);
	if (getrandom(builder_profile(b)->id, 16, 0) != 16)
		return -EIO;
	return builder_finish(b, p);
}

static void lose(const struct sink_window *o, int err)
{
	log_warning("%s: a window is lost: %s", o->plan->name, strerror(-err));
	count(o, "windows_lost_total", "Windows that could not be built.", 1);
}

static void put(struct job *j, bool one_set, uint32_t set)
{
	const struct fusee_profile *p;
	struct builder *b = NULL;
	int r = builder_new(&b);

	if (!r)
		r = make(b, j, one_set, set, &p);
	if (!r) {
		delivery_put(j->window->delivery, b, p);
		return;
	}
	builder_free(b);
	lose(j->window, r);
}

/* One profile for each label set that has samples. */
static void put_each(struct job *j)
{
	const struct collector *c = j->w.collector;
	struct dict sets = {0};

	if (dict_init(&sets)) {
		lose(j->window, -ENOMEM);
		return;
	}
	for (uint32_t i = 1; i < c->samples.n; i++) {
		const struct sample_key *k = c->samples.entries[i].key;
		uint32_t set = c->collected[k->process].set, before = sets.n;
		uint32_t id = dict_add(&sets, &set, sizeof(set));

		if (id == before)
			put(j, true, set);
		else if (id == DICT_NONE) {
			lose(j->window, -ENOMEM); /* with those behind it: each would count */
			break;
		}
	}
	dict_fini(&sets);
}

/* ---- windows ---- */

static void forget_job(struct sink_window *o, struct job *j)
{
	for (uint32_t i = 0; i < MAX_JOBS; i++)
		if (o->jobs[i] == j)
			o->jobs[i] = NULL;
}

static void named(void *arg)
{
	struct job *j = arg;
	struct sink_window *o = j->window;

	if (o) {
		if (o->plan->per_target)
			put_each(j);
		else
			put(j, false, 0);
		forget_job(o, j);
		if (o->stopping && sink_window_quiet(o))
			delivery_stop(o->delivery, o->deadline_ns);
	}
	collector_free(j->w.collector);
	free(j);
}

static void lose_samples(const struct sink_window *o, struct collector *c)
{
	count(o, "window_samples_lost_total", "Samples in windows that were lost.", c->count);
	collector_free(c);
}

/* Requests the symbols of the window that was closed. Takes its collector over. */
static void symbolize_window(struct sink_window *o, const struct profiler_window *w)
{
	struct job *j = calloc(1, sizeof(*j));
	uint32_t i = 0;

	while (i < MAX_JOBS && o->jobs[i])
		i++;
	if (!j || i == MAX_JOBS) {
		count(o, "windows_lost_total", "Windows that could not be built.", 1);
		lose_samples(o, w->collector);
		free(j);
		return;
	}
	*j = (struct job){.window = o, .w = *w};
	o->jobs[i] = j;
	if (symbolizer_request(o->on.profiler->symbolizer, w->collector, named, j)) {
		lose(o, -ENOMEM);
		lose_samples(o, w->collector);
		forget_job(o, j);
		free(j);
	}
}

void sink_window_close_window(struct sink_window *o)
{
	struct profiler_window w;

	if (profiler_close_window(o->on.profiler, o->slot, !o->stopping, &w))
		return; /* no memory: this window goes on */
	count(o, "windows_total", "Windows closed.", 1);
	if (w.collector && w.collector->count)
		symbolize_window(o, &w);
	else
		collector_free(w.collector);
}

static void on_timer(void *arg)
{
	struct sink_window *o = arg;

	o->on.drain(o->on.arg);
	sink_window_close_window(o);
	worker_dispatch(o->on.profiler->worker);
}

/* ---- life ---- */

int sink_window_new(struct sink_window **ret, const struct sink_window_context *on,
		    const struct plan_instance *plan, struct fusee_instance *instance)
{
	struct delivery_options d = {.queue_bytes = plan->queue_bytes};
	struct sink_window *o = calloc(1, sizeof(*o));
	struct profiler_window w = {0};
	int r = o ? profiler_open_window(on->profiler, &o->slot) : -ENOMEM;

	if (r) {
		free(o);
		return r;
	}
	o->on = *on;
	o->plan = plan;
	o->every_ns = plan->every_ns;
	r = loop_every(on->loop, plan->every_ns, on_timer, o, &o->timer);
	if (!r)
		r = delivery_new(&o->delivery, instance, &d);
	if (!r) {
		*ret = o;
		return 0;
	}
	profiler_close_window(on->profiler, o->slot, false, &w);
	collector_free(w.collector);
	loop_timer_free(o->timer);
	free(o);
	return r;
}

int sink_window_replan(struct sink_window *o, const struct plan_instance *plan, uint64_t period_ns)
{
	struct loop_timer *timer;
	int r = 0;

	o->plan = plan;
	o->on.period_ns = period_ns;
	delivery_set_queue_bytes(o->delivery, plan->queue_bytes);
	if (plan->every_ns == o->every_ns)
		return 0;
	r = loop_every(o->on.loop, plan->every_ns, on_timer, o, &timer);
	if (r)
		return r;
	loop_timer_free(o->timer);
	o->timer = timer;
	o->every_ns = plan->every_ns;
	return 0;
}

bool sink_window_quiet(const struct sink_window *o)
{
	for (uint32_t i = 0; i < MAX_JOBS; i++)
		if (o->jobs[i])
			return false;
	return true;
}

uint32_t sink_window_slot(const struct sink_window *o)
{
	return o->slot;
}

struct delivery *sink_window_delivery(const struct sink_window *o)
{
	return o->delivery;
}

const struct plan_instance *sink_window_plan(const struct sink_window *o)
{
	return o->plan;
}

uint32_t sink_window_pending(const struct sink_window *o, const struct collector **c, uint32_t n)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < MAX_JOBS && found < n; i++)
		if (o->jobs[i])
			c[found++] = o->jobs[i]->w.collector;
	return found;
}

void sink_window_stop(struct sink_window *o, uint64_t deadline_ns)
{
	if (o->stopping)
		return;
	o->stopping = true;
	o->deadline_ns = deadline_ns;
	loop_timer_free(o->timer);
	o->timer = NULL;
	sink_window_close_window(o);
	worker_dispatch(o->on.profiler->worker);
	if (sink_window_quiet(o))
		delivery_stop(o->delivery, deadline_ns);
}

void sink_window_free(struct sink_window *o)
{
	if (!o)
		return;
	sink_window_stop(o, 0);
	if (!sink_window_quiet(o))
		delivery_stop(o->delivery, o->deadline_ns);
	for (uint32_t i = 0; i < MAX_JOBS; i++)
		if (o->jobs[i]) {
			count(o, "windows_lost_total", "Windows that could not be built.", 1);
			o->jobs[i]->window = NULL;
		}
	delivery_free(o->delivery);
	free(o);
}

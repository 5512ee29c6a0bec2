/* SPDX-License-Identifier: Apache-2.0 */
#include "delivery/sink_window.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <fusee/helpers.h>

#include "base/clock.h"
#include "base/dict.h"
#include "base/log.h"
#include "base/metrics.h"
#include "delivery/internal/window_labels.h"
#include "hooks/hooks.h"
#include "profiler/fetching.h"
#include "fetcher/fetcher.h"

/* Closed windows of one sink that may wait for symbols. Further windows are lost and counted, so
 * that a slow worker does not take memory without bound. */
#define MAX_CLOSED 4
#define MINUTE 60000000000ull

/* A closed window waits for symbols for one period, and for so long at most. */
#define NAMES_NS 5000000000ull

/* A closed window that waits for symbols. */
struct closed {
	struct sink_window *sink; /* NULL: freed meanwhile */
	struct profiler *profiler;
	struct profiler_window window;
	struct loop_timer *timer; /* ends the wait for symbols */
	bool symbolized;          /* but an older window is not yet */
	bool server_names;        /* of the plan when the symbols were requested */
};

struct sink_window {
	struct sink_window_context context;
	const struct plan_instance *plan;
	struct delivery *delivery;
	struct loop_timer *timer;
	uint64_t every_ns;                 /* the period of the timer */
	uint32_t slot;                     /* of the pipeline */
	struct closed *closed[MAX_CLOSED]; /* the oldest first; NULL after the last */
	uint64_t last_lost_ns;             /* the last lost window, CLOCK_MONOTONIC; 0: none */
	bool stopping;
	uint64_t deadline_ns;
	uint64_t late;                   /* windows without all names */
	struct window_labels *relabeled; /* used if there are rules of relabeling */
};

static void count(const struct sink_window *sink, const char *name, const char *help, uint64_t n)
{
	if (n)
		metric_add(name, help, METRIC_LABELS("instance", sink->plan->name), n);
}

/* ---- one profile ---- */

static struct build_options options_of(const struct closed *closed, enum build_part part,
				       bool one_set, uint32_t set)
{
	const struct sink_window *sink = closed->sink;
	const struct sink_window_context *context = &sink->context;
	bool rules = window_labels_has_rules(sink->relabeled);

	return (struct build_options){
		.part = part,
		.period_ns = context->period_ns,
		.labels = rules ? window_labels_of : sink->context.labels,
		.group = rules ? window_labels_group : NULL,
		.arg = rules ? sink->relabeled : sink->context.arg,
		.omit = (const char *const *)sink->plan->omit,
		.one_set = one_set,
		.set = set,
		.server_names = closed->server_names,
	};
}

void sink_window_put(struct sink_window *sink, struct builder *b, const struct fusee_profile *p)
{
	delivery_put(sink->delivery, b, p);
}

static int build(struct builder *b, const struct closed *closed,
		 const struct build_options *options, const struct fusee_profile **p)
{
	const struct sink_window *sink = closed->sink;
	int r = build_profile(b, sink->context.profiler, closed->window.collector, options);

	if (r)
		return r;
	builder_profile(b)->duration_ns = closed->window.end_ns -
					  closed->window.collector->start_ns;
	if (!options->group && !options->one_set && !build_omits(options, fusee_text("host")))
		build_host(b);
	if (!options->one_set)
		build_window_losses(b, &closed->window, options);
	return build_end(b, closed->window.collector, p);
}

static void count_lost(struct sink_window *sink, uint64_t samples)
{
	delivery_not_built(sink->delivery, samples);
	sink->last_lost_ns = clock_now();
	count(sink, "windows_lost_total",
	      "Total number of windows lost before a profile was built.", 1);
}

static void log_lost(struct sink_window *sink, int err, uint64_t samples)
{
	log_warning("%s: a window is lost: %s", sink->plan->name, strerror(-err));
	count_lost(sink, samples);
}

static bool is_cpu(const struct build_options *o)
{
	return o->part == BUILD_ALL || o->part == BUILD_CPU;
}

static void put_profile(struct closed *closed, const struct build_options *options)
{
	const struct fusee_profile *p;
	struct builder *b = NULL;
	int r = builder_new(&b);

	if (!r)
		r = build(b, closed, options, &p);
	if (!r) {
		const struct sink_window_context *context = &closed->sink->context;

		if (context->built && is_cpu(options))
			context->built(context->built_arg, closed->sink->plan, p);
		delivery_put(closed->sink->delivery, b, p);
		return;
	}
	builder_free(b);
	log_lost(closed->sink, r, build_samples(closed->window.collector, options));
}

/* Lost ticks are of no label set. */
static bool has_lost(const struct closed *closed, const struct build_options *o)
{
	return !o->one_set && build_window_has_lost(&closed->window, o);
}

static bool is_worth(const struct closed *closed, const struct build_options *o)
{
	return build_samples(closed->window.collector, o) || has_lost(closed, o) ||
	       (o->in_use && build_has_in_use(closed->window.collector, o));
}

/* A profile of each hook that has hits. true: there was one. */
static bool put_hooks(struct closed *closed, bool one_set, uint32_t set)
{
	const struct collector *c = closed->window.collector;
	struct build_options o = options_of(closed, BUILD_HITS, one_set, set);
	bool seen[UINT8_MAX + 1] = {[0] = true}, any = false;

	for (uint32_t i = 1; closed->sink->context.hooks && i < c->samples.n; i++) {
		const struct sample_key *k = c->samples.entries[i].key;
		const struct hook *hook;

		o.hook = collected_is_hit(k) ? (uint8_t)(COLLECTED_HIT - k->sampler) : 0;
		if (seen[o.hook] || !build_has(&o, c, k))
			continue;
		seen[o.hook] = true;
		hook = hooks_of(closed->sink->context.hooks, o.hook);
		if (!hook)
			continue; /* its number is kept for longer than windows */
		o.probe = hook->name;
		o.event = hook->parsed.kind->name;
		o.timed = hook->parsed.kind->timed;
		o.period_ns = hook->period;
		put_profile(closed, &o);
		any = true;
	}
	return any;
}

/* CPU time, what each sampler chose, allocations, and each hook's hits are profiles of their own.
 */
static void put(struct closed *closed, bool one_set, uint32_t set)
{
	const struct wait_periods *periods = &closed->sink->context.chosen_periods;
	struct build_options cpu = options_of(closed, BUILD_CPU, one_set, set),
			     chosen = options_of(closed, BUILD_CHOSEN, one_set, set),
			     hits = options_of(closed, BUILD_HITS, one_set, set);
	uint32_t hit_period = closed->sink->context.hit_period;
	bool any = put_hooks(closed, one_set, set);

	hits.event = "alloc_space";
	hits.hits = true;
	hits.in_use = closed->sink->context.add_in_use;
	hits.period_ns = hit_period;
	any |= hit_period && (build_samples(closed->window.collector, &hits) ||
			      build_has_in_use(closed->window.collector, &hits));
	if (!periods->n && !hit_period && !closed->sink->context.hooks)
		cpu.part = BUILD_ALL;
	for (uint32_t i = 0; i < periods->n; i++) {
		chosen.sampler = i;
		any |= build_samples(closed->window.collector, &chosen) != 0;
	}
	if (!any || is_worth(closed, &cpu))
		put_profile(closed, &cpu);
	for (uint32_t i = 0; i < periods->n; i++) {
		chosen.sampler = i;
		chosen.period_ns = periods->at[i];
		if (is_worth(closed, &chosen))
			put_profile(closed, &chosen);
	}
	if (hit_period && is_worth(closed, &hits))
		put_profile(closed, &hits);
}

/* Counts the samples that rules exclude. true: others remain. */
static bool count_dropped(const struct closed *closed)
{
	const struct collector *c = closed->window.collector;
	struct sink_window *sink = closed->sink;
	bool remain = false;

	for (uint32_t i = 1; i < c->samples.n; i++) {
		const struct sample_key *k = c->samples.entries[i].key;
		uint32_t set = c->collected[k->process].set;
		const char *reason = window_labels_dropped(sink->relabeled, set);

		remain |= !reason;
		if (reason)
			metric_add("relabel_samples_dropped_total",
				   "Total number of samples that rules of relabeling excluded, as "
				   "labels or rules had changed since they were taken.",
				   METRIC_LABELS("instance", sink->plan->name, "reason", reason),
				   c->sums[i].count);
	}
	return remain;
}

/* One profile for each label set that has samples; sets that rules made equal are one. */
static void put_each(struct closed *closed)
{
	const struct collector *c = closed->window.collector;
	struct dict sets = {0};

	if (dict_init(&sets)) {
		log_lost(closed->sink, -ENOMEM, c->count);
		return;
	}
	for (uint32_t i = 1; i < c->samples.n; i++) {
		const struct sample_key *k = c->samples.entries[i].key;
		uint32_t set = c->collected[k->process].set, before = sets.n;
		struct build_options options = options_of(closed, BUILD_ALL, true, set);
		uint32_t group = options.group ? options.group(options.arg, set) : set;
		uint32_t id = dict_add(&sets, &group, sizeof(group));

		if (id == before && build_has_set(&options, set))
			put(closed, true, set);
		else if (id == DICT_NONE) {
			log_lost(closed->sink, -ENOMEM,
				 build_samples(c, &options)); /* this set and those after it */
			break;
		}
	}
	dict_fini(&sets);
}

static void put_window(struct closed *closed)
{
	struct window_labels *relabeled = closed->sink->relabeled;
	bool rules = window_labels_has_rules(relabeled), any = true;

	if (rules) {
		window_labels_begin(relabeled);
		any = count_dropped(closed);
	}
	if (any && closed->sink->plan->per_target)
		put_each(closed);
	else if (any)
		put(closed, false, 0);
	if (rules)
		window_labels_end(relabeled);
}

/* ---- windows ---- */

static void forget_closed(struct sink_window *sink, const struct closed *closed)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < MAX_CLOSED; i++)
		if (sink->closed[i] != closed)
			sink->closed[n++] = sink->closed[i];
	while (n < MAX_CLOSED)
		sink->closed[n++] = NULL;
}

static void free_closed(struct closed *closed)
{
	collector_free(closed->window.collector);
	free(closed);
}

/* Windows are delivered in their order: a window that has its symbols waits for those before it. */
static void put_symbolized(struct sink_window *sink)
{
	struct closed *oldest;

	while ((oldest = sink->closed[0]) && oldest->symbolized) {
		put_window(oldest);
		forget_closed(sink, oldest);
		free_closed(oldest);
	}
}

/* Requests debug files from servers, if the plan names some. */
static void request_debug_files(const struct closed *closed)
{
	const char *obstacle = fetcher_obstacle(worker_fetcher(closed->profiler->worker));

	if (obstacle)
		log_warning("symbols: no debug files come from servers: %s", obstacle);
	fetching_request(closed->profiler, closed->window.collector);
}

static void on_symbolized(void *arg)
{
	struct closed *closed = arg;
	struct sink_window *sink = closed->sink;

	loop_timer_free(closed->timer);
	closed->timer = NULL;
	closed->symbolized = true;
	if (!sink) {
		free_closed(closed);
		return;
	}
	if (!closed->server_names)
		request_debug_files(closed);
	put_symbolized(sink);
	if (sink->stopping && sink_window_is_idle(sink, UINT64_MAX))
		delivery_stop(sink->delivery, sink->deadline_ns);
}

/* Symbols are late: the profile is built with addresses in their place. */
static void on_late(void *arg)
{
	struct closed *closed = arg;
	struct sink_window *sink = closed->sink;
	uint32_t files;

	closed->timer = NULL;
	if (sink)
		sink->late++;
	if (sink && !(sink->late & (sink->late - 1))) /* the 1st, 2nd, 4th .. */
		log_warning("%s: a window is delivered without all names, as the workers have not "
			    "found them in time (%" PRIu64 " windows so far)",
			    sink->plan->name, sink->late);
	if (sink)
		count(sink, "windows_without_names_total",
		      "Total number of windows delivered before all their addresses had names.", 1);
	files = symbolizer_expire(closed->profiler->symbolizer, clock_now());
	log_debug("%u files have no answer of the workers yet", files);
}

static void lose_samples(const struct sink_window *sink, struct collector *c)
{
	count(sink, "window_samples_lost_total", "Total number of samples in lost windows.",
	      c->count);
	collector_free(c);
}

/* Requests the symbols of a closed window, and takes its collector over. */
static void symbolize_window(struct sink_window *sink, const struct profiler_window *w)
{
	struct closed *closed = calloc(1, sizeof(*closed));
	uint64_t wait = sink->every_ns < NAMES_NS ? sink->every_ns : NAMES_NS;
	uint64_t deadline = clock_now() + wait;
	uint32_t i = 0;

	while (i < MAX_CLOSED && sink->closed[i])
		i++;
	if (!closed || i == MAX_CLOSED) {
		log_warning("%s: a window is lost: %d windows wait for symbols already",
			    sink->plan->name, MAX_CLOSED);
		count_lost(sink, w->collector->count);
		lose_samples(sink, w->collector);
		free(closed);
		return;
	}
	*closed = (struct closed){.sink = sink,
				  .profiler = sink->context.profiler,
				  .window = *w,
				  .server_names = sink->plan->server_names};
	sink->closed[i] = closed;
	if (loop_at(sink->context.loop, deadline, on_late, closed, &closed->timer) ||
	    symbolizer_request(closed->profiler->symbolizer, w->collector, closed->server_names,
			       deadline, on_symbolized, closed)) {
		log_lost(sink, -ENOMEM, w->collector->count);
		lose_samples(sink, w->collector);
		forget_closed(sink, closed);
		loop_timer_free(closed->timer);
		free(closed);
	}
}

void sink_window_close_window(struct sink_window *sink)
{
	struct profiler_window w;

	if (profiler_close_window(sink->context.profiler, sink->slot, !sink->stopping, &w))
		return; /* no memory: the window continues */
	count(sink, "windows_total", "Total number of closed windows.", 1);
	if (w.collector && sink->context.add_in_use)
		sink->context.add_in_use(sink->context.arg, sink->slot, w.collector);
	if (w.collector && (w.collector->count || w.collector->followed.all.len))
		symbolize_window(sink, &w);
	else
		collector_free(w.collector);
}

static void on_timer(void *arg)
{
	struct sink_window *sink = arg;

	sink->context.drain(sink->context.arg);
	sink_window_close_window(sink);
	worker_dispatch(sink->context.profiler->worker);
}

/* ---- the object ---- */

int sink_window_new(struct sink_window **ret, const struct sink_window_context *context,
		    const struct plan_instance *plan, struct fusee_instance *instance)
{
	struct delivery_options d = {.queue_bytes = plan->queue_bytes,
				     .spool = plan->spool,
				     .spool_limits = {plan->spool_bytes, plan->spool_age_ns},
				     .spool_sync_ns = plan->spool_sync_ns,
				     .files = context->files};
	struct sink_window *sink = calloc(1, sizeof(*sink));
	struct profiler_window w = {0};
	int r = sink ? profiler_open_window(context->profiler, &sink->slot) : -ENOMEM;

	if (r) {
		free(sink);
		return r;
	}
	sink->context = *context;
	sink->plan = plan;
	sink->every_ns = plan->every_ns;
	sink->relabeled = window_labels_new(plan, context->labels, context->arg);
	r = sink->relabeled ? 0 : -ENOMEM;
	if (!r)
		r = loop_every(context->loop, plan->every_ns, on_timer, sink, &sink->timer);
	if (!r)
		r = delivery_new(&sink->delivery, instance, &d);
	if (!r) {
		*ret = sink;
		return 0;
	}
	profiler_close_window(context->profiler, sink->slot, false, &w);
	collector_free(w.collector);
	loop_timer_free(sink->timer);
	window_labels_free(sink->relabeled);
	free(sink);
	return r;
}

int sink_window_replan(struct sink_window *sink, const struct plan_instance *plan,
		       uint64_t period_ns)
{
	struct loop_timer *timer;
	int r = 0;

	sink->plan = plan;
	sink->context.period_ns = period_ns;
	window_labels_replan(sink->relabeled, plan);
	delivery_set_queue_bytes(sink->delivery, plan->queue_bytes);
	delivery_set_spool(sink->delivery,
			   &(struct spool_limits){plan->spool_bytes, plan->spool_age_ns},
			   plan->spool_sync_ns);
	if (plan->every_ns == sink->every_ns)
		return 0;
	r = loop_every(sink->context.loop, plan->every_ns, on_timer, sink, &timer);
	if (r)
		return r;
	loop_timer_free(sink->timer);
	sink->timer = timer;
	sink->every_ns = plan->every_ns;
	return 0;
}

bool sink_window_is_idle(const struct sink_window *sink, uint64_t until_ns)
{
	for (uint32_t i = 0; i < MAX_CLOSED; i++)
		if (sink->closed[i] && sink->closed[i]->window.end_ns <= until_ns)
			return false;
	return true;
}

const char *sink_window_problem(const struct sink_window *sink, uint64_t now)
{
	uint64_t recent = sink->every_ns > MINUTE / 2 ? 2 * sink->every_ns : MINUTE;
	struct delivery_stats d;

	for (uint32_t i = 0; i < MAX_CLOSED; i++)
		if (sink->closed[i] && now > sink->closed[i]->window.end_ns + sink->every_ns)
			return "a window has waited for symbols longer than a period";
	if (sink->last_lost_ns && now - sink->last_lost_ns < recent)
		return "a window was lost";
	delivery_stats(sink->delivery, &d);
	if (d.last_lost_ns && now - d.last_lost_ns < recent)
		return "a profile was lost";
	return NULL;
}

uint32_t sink_window_slot(const struct sink_window *sink)
{
	return sink->slot;
}

struct delivery *sink_window_delivery(const struct sink_window *sink)
{
	return sink->delivery;
}

const struct plan_instance *sink_window_plan(const struct sink_window *sink)
{
	return sink->plan;
}

uint32_t sink_window_pending(const struct sink_window *sink, const struct collector **c, uint32_t n)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < MAX_CLOSED && found < n; i++)
		if (sink->closed[i])
			c[found++] = sink->closed[i]->window.collector;
	return found;
}

void sink_window_stop(struct sink_window *sink, uint64_t deadline_ns)
{
	if (sink->stopping)
		return;
	sink->stopping = true;
	sink->deadline_ns = deadline_ns;
	loop_timer_free(sink->timer);
	sink->timer = NULL;
	sink_window_close_window(sink);
	worker_dispatch(sink->context.profiler->worker);
	if (sink_window_is_idle(sink, UINT64_MAX))
		delivery_stop(sink->delivery, deadline_ns);
}

/* The symbolizer still has a window without symbols: on_symbolized() frees it. */
static void lose_closed(struct sink_window *sink, struct closed *closed)
{
	count_lost(sink, closed->window.collector->count);
	loop_timer_free(closed->timer);
	closed->timer = NULL;
	closed->sink = NULL;
	if (closed->symbolized)
		free_closed(closed);
}

void sink_window_free(struct sink_window *sink)
{
	if (!sink)
		return;
	sink_window_stop(sink, 0);
	if (!sink_window_is_idle(sink, UINT64_MAX))
		delivery_stop(sink->delivery, sink->deadline_ns);
	for (uint32_t i = 0; i < MAX_CLOSED && sink->closed[i]; i++)
		lose_closed(sink, sink->closed[i]);
	delivery_free(sink->delivery);
	window_labels_free(sink->relabeled);
	free(sink);
}

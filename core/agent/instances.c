/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/internal/instances.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "lua/policy.h"
#include "base/metrics.h"

#define MAX_PENDING (PLAN_MAX_SINKS * 4)

/* A sink of an earlier plan that still delivers, or, after the sinks of a plan, the plan itself. */
struct removed {
	struct removed *next;
	struct sink_window *window; /* NULL: an entry of a plan */
	struct plan *plan;          /* NULL: an entry of a sink */
	uint64_t until_ns;
};

/* A plan that does not run yet, and the instances that were made for it. */
struct attempt {
	struct instances *running;
	struct plan *plan;
	struct sink_window *windows[PLAN_MAX_SINKS]; /* kept and new */
	bool kept[PLAN_MAX_SINKS];                   /* by sinks of the new plan: it runs already */
	bool stays[PLAN_MAX_SINKS];                  /* by sinks of the running plan */
	struct source *sources;
	bool *source_kept, *source_stays;
	struct removed *spare; /* entries for all removed sinks, so that removing cannot fail */
	char *error;
};

/* ---- what a reload cannot change ---- */

static int fail_fixed(struct attempt *t, const char *what)
{
	if (asprintf(&t->error, "%s: %s needs a restart: the running plan stays",
		     t->plan->path ? t->plan->path : "the plan", what) < 0)
		t->error = NULL;
	return -EINVAL;
}

static bool same_words(char *const *a, char *const *b)
{
	for (; *a && *b; a++, b++)
		if (strcmp(*a, *b))
			return false;
	return !*a && !*b;
}

/* The profiler, the control socket and the HTTP server are opened once. */
static bool same_instance(const struct plan_instance *a, const struct plan_instance *b)
{
	return !strcmp(a->identity, b->identity) && !strcmp(a->name, b->name);
}

static bool same_unwinders(const struct plan *a, const struct plan *b)
{
	bool same = a->nunwinders == b->nunwinders;

	for (uint32_t i = 0; same && i < a->nunwinders; i++)
		same = same_instance(a->unwinders[i], b->unwinders[i]);
	return same;
}

struct wait_periods instances_chosen_periods(const struct plan *plan)
{
	struct wait_periods periods = {0};

	for (; periods.n < plan->samplers.n; periods.n++)
		periods.at[periods.n] = plan->samplers.list[periods.n]->period;
	return periods;
}

static bool same_samplers(const struct plan *a, const struct plan *b)
{
	bool same = a->samplers.n == b->samplers.n &&
		    a->samplers.alloc_bytes == b->samplers.alloc_bytes &&
		    a->samplers.inuse_bytes == b->samplers.inuse_bytes;

	for (uint32_t i = 0; same && i < a->samplers.n; i++)
		same = same_instance(a->samplers.list[i], b->samplers.list[i]) &&
		       a->samplers.list[i]->period == b->samplers.list[i]->period;
	return same;
}

static int check_fixed(struct attempt *t)
{
	const struct plan *is = t->running->plan, *new = t->plan;

	if (!is)
		return 0;
	if (is->sampler != new->sampler)
		return fail_fixed(t, "another 'sampler' of sample.cpu");
	if (is->limits.stack_bytes != new->limits.stack_bytes)
		return fail_fixed(t, "another 'stack' of sample.cpu");
	if (is->limits.ring_bytes != new->limits.ring_bytes)
		return fail_fixed(t, "another 'rings' of sample.cpu");
	if (!same_samplers(is, new) || (new->samplers.nprobes && !t->running->sampling->hooks))
		return fail_fixed(t, "another sampler beside sample.cpu, or other options of it,");
	if (is->kernel != new->kernel)
		return fail_fixed(t, "another 'kernel' of sample.cpu");
	if (is->inlines != new->inlines)
		return fail_fixed(t, "another 'inlines' of sample.cpu");
	if (!same_words(is->without, new->without) || !same_unwinders(is, new))
		return fail_fixed(t, "other unwinders, or other options of them");
	if (strcmp(is->control, new->control))
		return fail_fixed(t, "another control socket");
	if (strcmp(is->listen, new->listen))
		return fail_fixed(t, "another address for metrics");
	return 0;
}

static int new_instance(struct attempt *t, const struct plan_instance *plan,
			struct fusee_instance **ret)
{
	const struct plugin *p = plugin_folder_find(t->running->folder, plan->kind, plan->plugin);
	struct instance_options o = {.name = plan->name,
				     .where = plan->where,
				     .options = plan->options,
				     .n = plan->noptions};

	if (!p)
		return -ENOENT;
	return instance_new(ret, p->descriptor, t->running->host, &o, &t->error);
}

/* ---- sinks ---- */

/* The running window of a sink that is in both plans, or NULL. */
static struct sink_window *find_window(struct attempt *t, const struct plan_instance *plan)
{
	const struct instances *is = t->running;

	for (uint32_t i = 0; is->plan && i < is->plan->nsinks; i++)
		if (!t->stays[i] && same_instance(is->plan->sinks[i], plan) &&
		    !strcmp(is->plan->sinks[i]->spool, plan->spool)) {
			t->stays[i] = true;
			return is->windows[i];
		}
	return NULL;
}

const struct fusee_label *instances_labels_of(void *arg, uint32_t set, uint32_t *n)
{
	const struct agent_sampling *s = arg;
	const struct decision *d = decisions_of_set(s->decisions, set);

	*n = d ? d->nlabels : 0;
	return d ? d->labels : NULL;
}

static void drain(void *arg)
{
	agent_sampling_drain(arg);
}

static int new_window(struct attempt *t, const struct plan_instance *plan, struct sink_window **ret)
{
	struct sink_window_context context = {
		.loop = t->running->loop,
		.profiler = &t->running->sampling->profiler,
		.period_ns = profiler_period_ns(t->plan->hz),
		.chosen_periods = instances_chosen_periods(t->plan),
		.hit_period = (uint32_t)plan_hit_bytes(t->plan),
		.hooks = t->running->sampling->hooks,
		.drain = drain,
		.add_in_use = t->plan->samplers.inuse_bytes ? agent_sampling_add_in_use : NULL,
		.labels = instances_labels_of,
		.arg = t->running->sampling,
		.built = t->running->built,
		.built_arg = t->running->arg,
		.files = t->running->files,
	};
	struct fusee_instance *in;
	int r = new_instance(t, plan, &in);

	if (r)
		return r;
	r = sink_window_new(ret, &context, plan, in);
	if (r)
		instance_free(in);
	return r;
}

static int make_sinks(struct attempt *t)
{
	int r = 0;

	for (uint32_t i = 0; !r && i < t->plan->nsinks; i++) {
		t->windows[i] = find_window(t, t->plan->sinks[i]);
		t->kept[i] = t->windows[i];
		if (!t->kept[i])
			r = new_window(t, t->plan->sinks[i], &t->windows[i]);
	}
	return r;
}

/* ---- discoveries ---- */

static struct discovery *find_discovery(struct attempt *t, const struct plan_instance *plan)
{
	const struct instances *is = t->running;

	for (uint32_t i = 0; i < is->nsources; i++)
		if (!t->source_stays[i] && same_instance(is->sources[i].plan, plan)) {
			t->source_stays[i] = true;
			return is->sources[i].discovery;
		}
	return NULL;
}

static int new_discovery(struct attempt *t, struct source *s)
{
	struct fusee_instance *in;
	int r = new_instance(t, s->plan, &in);

	if (r)
		return r;
	r = discoveries_add(t->running->sampling->discoveries, in, &s->discovery, &t->error);
	if (r)
		instance_free(in);
	return r;
}

static int make_sources(struct attempt *t)
{
	uint32_t n = t->plan->ndiscoveries;
	int r = 0;

	t->sources = calloc(n + 1, sizeof(*t->sources));
	t->source_kept = calloc(n + 1, sizeof(bool));
	t->source_stays = calloc(t->running->nsources + 1, sizeof(bool));
	if (!t->sources || !t->source_kept || !t->source_stays)
		return -ENOMEM;
	for (uint32_t i = 0; !r && i < n; i++) {
		t->sources[i].plan = t->plan->discoveries[i];
		t->sources[i].discovery = find_discovery(t, t->sources[i].plan);
		t->source_kept[i] = t->sources[i].discovery;
		if (!t->source_kept[i])
			r = new_discovery(t, &t->sources[i]);
	}
	return r;
}

/* ---- removed sinks ---- */

static bool has_name(const struct sink_window *w, const char *name)
{
	return w && !strcmp(sink_window_plan(w)->name, name);
}

/* Frees the window and forgets its metrics, with what was counted last, unless another sink has the
 * same name: a sink of the plan, or a removed sink. */
static void free_window(struct instances *is, struct sink_window *w)
{
	char *name = w ? strdup(sink_window_plan(w)->name) : NULL;
	bool others = !name;

	sink_window_free(w);
	for (uint32_t i = 0; !others && is->plan && i < is->plan->nsinks; i++)
		others = is->windows[i] != w && has_name(is->windows[i], name);
	for (const struct removed *r = is->removed; !others && r; r = r->next)
		others = r->window != w && has_name(r->window, name);
	if (!others)
		metric_forget("instance", name);
	free(name);
}

static struct removed *take_spare(struct attempt *t)
{
	struct removed *r = t->spare;

	t->spare = r->next;
	return r;
}

static int make_spare(struct attempt *t)
{
	uint32_t before = t->running->plan ? t->running->plan->nsinks : 0;
	uint32_t n = 1 + (before > t->plan->nsinks ? before : t->plan->nsinks);

	while (n--) {
		struct removed *r = calloc(1, sizeof(*r));

		if (!r)
			return -ENOMEM;
		r->next = t->spare;
		t->spare = r;
	}
	return 0;
}

static void free_spare(struct attempt *t)
{
	while (t->spare)
		free(take_spare(t));
}

/* Whether delivery_free() does not wait: an abandoned delivery ends at most STOP_NS after its
 * deadline. */
static bool has_ended(const struct removed *r, uint64_t now)
{
	return !r->window || delivery_ended(sink_window_delivery(r->window)) ||
	       now > r->until_ns + STOP_NS;
}

/* all: also sinks that have not ended; waits for them. */
static void free_removed(struct instances *is, bool all)
{
	uint64_t now = clock_now();
	bool used = false; /* whether a sink uses the next plan in the list */

	/* the newest first, each plan after its sinks */
	for (struct removed **at = &is->removed, *r; (r = *at);) {
		bool stays = !all && (r->plan ? used : !has_ended(r, now));

		used = !r->plan && (used || stays);
		if (stays) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		free_window(is, r->window);
		plan_free(r->plan);
		free(r);
	}
}

/* ---- plans ---- */

/* Begins to end the sinks of a plan, except those that stay, and the plan, without waiting. */
static void put_aside(struct attempt *t, struct plan *plan, struct sink_window *const *windows,
		      const bool *stays, uint64_t until)
{
	struct instances *is = t->running;
	struct removed *r = take_spare(t);

	*r = (struct removed){is->removed, NULL, plan, until};
	is->removed = r;
	for (uint32_t i = 0; i < plan->nsinks; i++) {
		if (!windows[i] || stays[i])
			continue;
		sink_window_stop(windows[i], until);
		r = take_spare(t);
		*r = (struct removed){is->removed, windows[i], NULL, until};
		is->removed = r;
	}
}

static void undo(struct attempt *t)
{
	put_aside(t, t->plan, t->windows, t->kept, clock_now());
	for (uint32_t i = 0; t->sources && i < t->plan->ndiscoveries; i++)
		if (t->sources[i].discovery && !t->source_kept[i])
			discoveries_remove(t->running->sampling->discoveries,
					   t->sources[i].discovery);
	free(t->sources);
}

/* Removes the sinks and discoveries that only the earlier plan has, and the plan. */
static void retire(struct attempt *t)
{
	struct instances *is = t->running;

	put_aside(t, is->plan, is->windows, t->stays, clock_now() + STOP_NS);
	for (uint32_t i = 0; i < is->nsources; i++)
		if (!t->source_stays[i])
			discoveries_remove(is->sampling->discoveries, is->sources[i].discovery);
}

static void run(struct attempt *t)
{
	struct instances *is = t->running;
	uint64_t slots[PLAN_MAX_SINKS] = {0};

	for (uint32_t i = 0; i < t->plan->nsinks; i++) {
		slots[i] = 1ull << sink_window_slot(t->windows[i]);
		if (t->kept[i] && sink_window_replan(t->windows[i], t->plan->sinks[i],
						     profiler_period_ns(t->plan->hz)))
			log_warning("%s: its windows keep their length: %s",
				    t->plan->sinks[i]->name, strerror(ENOMEM));
	}
	if (is->plan)
		retire(t);
	is->plan = t->plan;
	memcpy(is->windows, t->windows, sizeof(is->windows));
	free(is->sources);
	is->sources = t->sources;
	is->nsources = t->plan->ndiscoveries;
	is->generation++;
	agent_sampling_replan(is->sampling, is->plan, slots);
}

int instances_set_plan(struct instances *is, struct plan *plan, char **error)
{
	struct attempt t = {.running = is, .plan = plan};
	int r = make_spare(&t);

	if (r) {
		plan_free(plan);
	} else {
		r = check_fixed(&t);
		if (!r)
			r = make_sinks(&t);
		/* Samples until now belong to the running plan, with labels of its discoveries
		 * only. */
		if (!r && is->plan)
			agent_sampling_drain(is->sampling);
		discoveries_set_early(is->sampling->discoveries, lua_policy_is_early(plan));
		if (!r)
			r = make_sources(&t);
		r ? undo(&t) : run(&t);
	}
	if (r)
		*error = t.error ? t.error : strdup(strerror(-r));
	free(t.source_kept);
	free(t.source_stays);
	free_spare(&t);
	return r;
}

/* ---- all of them ---- */

void instances_deliver(void *instances, struct scraped *profile)
{
	const struct instances *is = instances;

	for (uint32_t i = 0; is->plan && i < is->plan->nsinks; i++) {
		int r = is->plan->sinks[i]->by_default ? scraped_put(profile, is->windows[i]) : 0;

		if (r)
			log_warning("%s: a scraped profile is lost: %s", is->plan->sinks[i]->name,
				    strerror(-r));
	}
}

void instances_close_windows(struct instances *is)
{
	for (uint32_t i = 0; i < is->plan->nsinks; i++)
		sink_window_close_window(is->windows[i]);
}

bool instances_are_idle(const struct instances *is, uint64_t until_ns)
{
	for (uint32_t i = 0; i < is->plan->nsinks; i++)
		if (!sink_window_is_idle(is->windows[i], until_ns))
			return false;
	return true;
}

void instances_stop(struct instances *is, uint64_t deadline_ns)
{
	for (uint32_t i = 0; i < is->plan->nsinks; i++)
		sink_window_stop(is->windows[i], deadline_ns);
}

bool instances_have_ended(const struct instances *is)
{
	for (uint32_t i = 0; i < is->plan->nsinks; i++)
		if (!delivery_ended(sink_window_delivery(is->windows[i])))
			return false;
	return instances_are_idle(is, UINT64_MAX);
}

void instances_tidy(struct instances *is)
{
	free_removed(is, false);
}

void instances_sweep(struct instances *is, bool names)
{
	const struct collector *closed[MAX_PENDING];
	uint32_t n = 0;

	for (uint32_t i = 0; i < is->plan->nsinks; i++)
		n += sink_window_pending(is->windows[i], closed + n, MAX_PENDING - n);
	for (const struct removed *r = is->removed; r; r = r->next)
		if (r->window)
			n += sink_window_pending(r->window, closed + n, MAX_PENDING - n);
	agent_sampling_sweep(is->sampling, closed, n, names);
}

void instances_fini(struct instances *is)
{
	for (uint32_t i = 0; is->plan && i < is->plan->nsinks; i++)
		sink_window_free(is->windows[i]);
	memset(is->windows, 0, sizeof(is->windows));
	free_removed(is, true);
	free(is->sources);
	plan_free(is->plan);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan's instances. A new plan is taken in two steps: first all that is new in it is made beside
 * what runs, and any failure takes that away again; then the agent changes over, and what the new
 * plan does not have ends. Instances with the same identity run on, with their queues.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "agent/agent_state.h"

/* What has been made for a plan that is not taken yet. */
struct attempt {
	struct agent *a;
	struct plan *plan;
	struct sink_window *windows[PLAN_MAX_SINKS]; /* kept and new ones */
	bool kept[PLAN_MAX_SINKS];                   /* of the plan */
	bool stays[PLAN_MAX_SINKS];                  /* of the running one */
	struct source *sources;
	bool *source_kept, *source_stays;
	struct leaving *spare; /* enough for all that leave: to change over needs no memory */
	char *error;
};

static int say(struct attempt *t, const char *what)
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

/* What events and tables were made with. */
static int check_fixed(struct attempt *t)
{
	const struct plan *is = t->a->plan, *new = t->plan;

	if (is == new)
		return 0;
	if (is->sampler != new->sampler)
		return say(t, "another 'sampler' of sample.cpu");
	if (is->stack_bytes != new->stack_bytes)
		return say(t, "another 'stack' of sample.cpu");
	if (is->kernel != new->kernel)
		return say(t, "another 'kernel' of sample.cpu");
	if (is->inlines != new->inlines)
		return say(t, "another 'inlines' of sample.cpu");
	if (!same_words(is->without, new->without))
		return say(t, "another choice of unwinders");
	if (strcmp(is->control, new->control))
		return say(t, "another control socket");
	if (strcmp(is->listen, new->listen))
		return say(t, "another address for metrics");
	return 0;
}

static int new_instance(struct attempt *t, const struct plan_instance *plan,
			struct fusee_instance **ret)
{
	const struct plugin *p = plugin_folder_find(&t->a->folder, plan->kind, plan->plugin);
	struct instance_options o = {.name = plan->name,
				     .where = plan->where,
				     .options = plan->options,
				     .n = plan->noptions};

	if (!p)
		return -ENOENT;
	return instance_new(ret, p->descriptor, &t->a->host, &o, &t->error);
}

/* ---- sinks ---- */

/* The running window that is this one of the new plan; NULL: none. */
static struct sink_window *find_outlet(struct attempt *t, const struct plan_instance *plan)
{
	const struct agent *a = t->a;

	for (uint32_t i = 0; a->plan != t->plan && i < a->plan->nsinks; i++)
		if (!t->stays[i] && !strcmp(a->plan->sinks[i]->identity, plan->identity) &&
		    !strcmp(a->plan->sinks[i]->name, plan->name)) {
			t->stays[i] = true;
			return a->windows[i];
		}
	return NULL;
}

static const struct fusee_label *labels_of(void *arg, uint32_t set, uint32_t *n)
{
	const struct decision *d = decisions_of_set(((struct agent *)arg)->decisions, set);

	*n = d ? d->nlabels : 0;
	return d ? d->labels : NULL;
}

static void drain(void *arg)
{
	agent_sampling_drain(arg);
}

static int new_outlet(struct attempt *t, const struct plan_instance *plan, struct sink_window **ret)
{
	struct agent *a = t->a;
	struct sink_window_context on = {
		.loop = a->loop,
		.profiler = &a->profiler,
		.period_ns = profiler_period_ns(t->plan->hz),
		.drain = drain,
		.labels = labels_of,
		.arg = a,
	};
	struct fusee_instance *in;
	int r = new_instance(t, plan, &in);

	if (r)
		return r;
	r = sink_window_new(ret, &on, plan, in);
	if (r)
		instance_free(in);
	return r;
}

static int make_sinks(struct attempt *t)
{
	int r = 0;

	for (uint32_t i = 0; !r && i < t->plan->nsinks; i++) {
		t->windows[i] = find_outlet(t, t->plan->sinks[i]);
		t->kept[i] = t->windows[i];
		if (!t->kept[i])
			r = new_outlet(t, t->plan->sinks[i], &t->windows[i]);
	}
	return r;
}

/* ---- discovery ---- */

static struct discovery *find_source(struct attempt *t, const struct plan_instance *plan)
{
	const struct agent *a = t->a;

	for (uint32_t i = 0; i < a->nsources; i++)
		if (!t->source_stays[i] && !strcmp(a->sources[i].plan->identity, plan->identity) &&
		    !strcmp(a->sources[i].plan->name, plan->name)) {
			t->source_stays[i] = true;
			return a->sources[i].discovery;
		}
	return NULL;
}

static int new_source(struct attempt *t, struct source *s)
{
	struct fusee_instance *in;
	int r = new_instance(t, s->plan, &in);

	if (r)
		return r;
	r = discoveries_add(t->a->discoveries, in, &s->discovery, &t->error);
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
	t->source_stays = calloc(t->a->nsources + 1, sizeof(bool));
	if (!t->sources || !t->source_kept || !t->source_stays)
		return -ENOMEM;
	for (uint32_t i = 0; !r && i < n; i++) {
		t->sources[i].plan = t->plan->discoveries[i];
		t->sources[i].discovery = find_source(t, t->sources[i].plan);
		t->source_kept[i] = t->sources[i].discovery;
		if (!t->source_kept[i])
			r = new_source(t, &t->sources[i]);
	}
	return r;
}

/* ---- those that go ---- */

static bool has_name(const struct sink_window *o, const char *name)
{
	return o && !strcmp(sink_window_plan(o)->name, name);
}

/* For good, unless one of that name stays: in the plan, or on its way out. What it counted in its
 * last moments goes too. */
static void free_outlet(struct agent *a, struct sink_window *o)
{
	char *name = o ? strdup(sink_window_plan(o)->name) : NULL;
	bool others = !name;

	sink_window_free(o);
	for (uint32_t i = 0; !others && a->plan && i < a->plan->nsinks; i++)
		others = a->windows[i] != o && has_name(a->windows[i], name);
	for (const struct leaving *l = a->leaving; !others && l; l = l->next)
		others = l->window != o && has_name(l->window, name);
	if (!others)
		metric_forget("instance", name);
	free(name);
}

static struct leaving *take_spare(struct attempt *t)
{
	struct leaving *l = t->spare;

	t->spare = l->next;
	return l;
}

static int make_spare(struct attempt *t)
{
	uint32_t n = t->a->plan != t->plan ? t->a->plan->nsinks + 1 : 0;

	while (n--) {
		struct leaving *l = calloc(1, sizeof(*l));

		if (!l)
			return -ENOMEM;
		l->next = t->spare;
		t->spare = l;
	}
	return 0;
}

static void free_spare(struct attempt *t)
{
	while (t->spare)
		free(take_spare(t));
}

/* ---- back, or over ---- */

static void undo(struct attempt *t)
{
	for (uint32_t i = 0; i < t->plan->nsinks; i++)
		if (t->windows[i] && !t->kept[i])
			free_outlet(t->a, t->windows[i]);
	for (uint32_t i = 0; t->sources && i < t->plan->ndiscoveries; i++)
		if (t->sources[i].discovery && !t->source_kept[i])
			discoveries_remove(t->a->discoveries, t->sources[i].discovery);
	free(t->sources);
}

/* The sinks that the new plan does not have go, with the plan that names them. */
static void retire(struct attempt *t)
{
	struct agent *a = t->a;
	struct leaving *l = take_spare(t);
	uint64_t until = clock_now() + STOP_NS;

	/* behind those of its sinks: it is freed after them */
	*l = (struct leaving){a->leaving, NULL, a->plan, until};
	a->leaving = l;
	for (uint32_t i = 0; i < a->plan->nsinks; i++) {
		if (t->stays[i])
			continue;
		sink_window_stop(a->windows[i], until);
		l = take_spare(t);
		*l = (struct leaving){a->leaving, a->windows[i], NULL, until};
		a->leaving = l;
	}
	for (uint32_t i = 0; i < a->nsources; i++)
		if (!t->source_stays[i])
			discoveries_remove(a->discoveries, a->sources[i].discovery);
}

static void change_over(struct attempt *t)
{
	struct agent *a = t->a;
	bool first = a->plan == t->plan;
	int r;

	for (uint32_t i = 0; i < t->plan->nsinks; i++)
		if (t->kept[i] && sink_window_replan(t->windows[i], t->plan->sinks[i],
						     profiler_period_ns(t->plan->hz)))
			log_warning("%s: its windows stay as long as they were: %s",
				    t->plan->sinks[i]->name, strerror(ENOMEM));
	if (!first)
		retire(t);
	a->plan = t->plan;
	memcpy(a->windows, t->windows, sizeof(a->windows));
	free(a->sources);
	a->sources = t->sources;
	a->nsources = t->plan->ndiscoveries;
	a->generation++;
	pipeline_threads(a->profiler.pipeline, a->plan->threads);
	r = rates_set_base(a->sampler, profiler_period_ns(a->plan->hz), a->plan->unknown_keep);
	if (r)
		log_warning("cannot sample whole CPUs: %s; each process gets events of its own, "
			    "which costs more (fusee doctor says what it takes)",
			    strerror(-r));
	decisions_replan(a->decisions, a->plan->unknown_keep);
}

int reload_plan(struct agent *a, struct plan *plan, char **error)
{
	struct attempt t = {.a = a, .plan = plan};
	int r = check_fixed(&t);

	if (!r)
		r = make_sinks(&t);
	if (!r)
		r = make_sources(&t);
	if (!r)
		r = make_spare(&t);
	if (r) {
		undo(&t);
		*error = t.error ? t.error : strdup(strerror(-r));
		if (a->plan != plan)
			plan_free(plan);
	} else {
		change_over(&t);
	}
	free(t.source_kept);
	free(t.source_stays);
	free_spare(&t);
	return r;
}

/* Errors of a plan as one text, a line each. */
static char *join(const struct plan_errors *e)
{
	struct buf b = {0};

	if (!e->n)
		return NULL;
	for (uint32_t i = 0; i < e->n; i++)
		buf_printf(&b, "%s%s", i ? "\n" : "", e->texts[i]);
	buf_add(&b, "", 1);
	if (b.error) {
		buf_fini(&b);
		return NULL;
	}
	return b.p;
}

int reload_run(struct agent *a, char **error)
{
	struct plan_errors errors = {0};
	struct plan *plan;
	int r = a->o.plan(a->o.arg, &a->folder, &plan, &errors);

	*error = NULL;
	if (r)
		*error = join(&errors);
	else
		r = reload_plan(a, plan, error);
	plan_errors_fini(&errors);
	metric_set("config_last_reload_successful", "Whether the last reload went well.", NULL, !r);
	free(a->reload_error);
	a->reload_failed = r;
	a->reload_error = r ? strdup(*error ? *error : strerror(-r)) : NULL;
	a->reload_ns = clock_now();
	return r;
}

/* ---- ends ---- */

static bool may_go(const struct leaving *l, uint64_t now)
{
	/* one that is given up costs delivery_free() no more time then */
	return !l->window || delivery_ended(sink_window_delivery(l->window)) ||
	       now > l->until_ns + STOP_NS;
}

void reload_tidy(struct agent *a, bool all)
{
	uint64_t now = clock_now();
	bool used = false; /* by sinks before it, back to the plan before */

	/* newest first, each plan behind its own sinks */
	for (struct leaving **at = &a->leaving, *l; (l = *at);) {
		bool stays = !all && (l->plan ? used : !may_go(l, now));

		used = !l->plan && (used || stays);
		if (stays) {
			at = &l->next;
			continue;
		}
		*at = l->next;
		free_outlet(a, l->window);
		plan_free(l->plan);
		free(l);
	}
}

void reload_close(struct agent *a)
{
	for (uint32_t i = 0; a->plan && i < a->plan->nsinks; i++)
		sink_window_free(a->windows[i]);
	memset(a->windows, 0, sizeof(a->windows));
	reload_tidy(a, true);
	free(a->sources);
}

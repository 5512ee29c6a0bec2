/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/internal/callbacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "lua/callback.h"

#define EARLY_NS 100000000u      /* a callback may run this early: timers are not exact */
#define LONGEST_NS 300000000000u /* between two calls of a callback that fails */
#define SECOND 1000000000u
#define PATIENCE 3u /* failures in a row */

/* ---- the view ---- */

/* A process with its decision. Members are sorted by decision, so that the processes of a decision
 * are adjacent. */
struct member {
	uint64_t decision; /* its address */
	pid_t pid;
};

struct view_builder {
	struct callback_state *state;
	double seconds; /* since the previous call */
	struct member *members;
	size_t nmembers, members_cap;
	struct callback_target *targets;
	const struct decision **decisions; /* of the targets */
	size_t ntargets;
	pid_t *pids; /* of all members, in the same order */
	struct hashmap cpu;
	bool no_memory;
};

static void add_member(void *arg, pid_t pid, const struct decision *d)
{
	struct view_builder *b = arg;
	struct member *to = ARRAY_ADD(b->members, b->nmembers, b->members_cap);

	if (to)
		*to = (struct member){(uint64_t)(uintptr_t)d, pid};
	else
		b->no_memory = true;
}

static int by_decision(const void *a, const void *b)
{
	const struct member *x = a, *y = b;

	if (x->decision != y->decision)
		return x->decision < y->decision ? -1 : 1;
	return (x->pid > y->pid) - (x->pid < y->pid);
}

/* CPUs that the decision's processes used since the previous call. */
static double cpu_of(struct view_builder *b, const struct decision *d)
{
	uint64_t key = (uint64_t)d->set * 2 + d->known;
	uint64_t before = (uint64_t)(uintptr_t)hashmap_get(&b->state->cpu, key);

	before -= !!before;
	if (before > d->cpu_ns) /* another decision for the same label set */
		before = 0;
	b->no_memory |= hashmap_put(&b->cpu, key, (void *)(uintptr_t)(d->cpu_ns + 1)) != 0;
	return (double)(d->cpu_ns - before) / 1e9 / b->seconds;
}

/* Adds the target whose first process is members[i]. */
static void add_target(struct view_builder *b, size_t i)
{
	const struct decision *d = (const void *)(uintptr_t)b->members[i].decision;
	struct callback_target *t = &b->targets[b->ntargets];

	b->decisions[b->ntargets++] = d;
	*t = (struct callback_target){.labels = d->labels,
				      .nlabels = d->nlabels,
				      .pids = b->pids + i,
				      .hz = d->hz,
				      .refused = d->refused,
				      .cpu = cpu_of(b, d)};
	while (i < b->nmembers && b->members[i].decision == (uint64_t)(uintptr_t)d) {
		b->pids[i] = b->members[i].pid;
		t->npids++;
		i++;
	}
}

static int build_view(struct view_builder *b, const struct decisions *decisions)
{
	decisions_each_process(decisions, add_member, b);
	b->pids = malloc((b->nmembers + 1) * sizeof(*b->pids));
	b->targets = calloc(b->nmembers + 1, sizeof(*b->targets));
	b->decisions = calloc(b->nmembers + 1, sizeof(*b->decisions));
	if (!b->pids || !b->targets || !b->decisions || b->no_memory)
		return -ENOMEM;
	if (b->nmembers)
		qsort(b->members, b->nmembers, sizeof(*b->members), by_decision);
	for (size_t i = 0; i < b->nmembers; i++)
		if (!i || b->members[i].decision != b->members[i - 1].decision)
			add_target(b, i);
	return b->no_memory ? -ENOMEM : 0;
}

static void free_view(struct view_builder *b)
{
	free(b->members);
	free(b->targets);
	free(b->decisions);
	free(b->pids);
	hashmap_fini(&b->cpu);
}

/* ---- actions ---- */

static void close_window(struct callbacks *c, uint32_t sink)
{
	agent_sampling_drain(c->instances->sampling);
	sink_window_close_window(c->instances->windows[sink]);
	worker_dispatch(c->instances->sampling->profiler.worker);
}

/* Closes the open window, so that the profile begins with a window of its own. */
static int begin_profile(struct callbacks *c, const struct decision *d,
			 const struct callback_action *a, uint64_t until_ns)
{
	uint64_t *until = &c->profile_until_ns[a->sink];
	int r = decision_add_sinks(decisions_cache(c->instances->sampling->decisions), d->set,
				   d->known, UINT64_C(1) << a->sink, until_ns);

	if (!r && !*until)
		close_window(c, a->sink);
	if (!r && *until < until_ns)
		*until = until_ns;
	return r;
}

/* Closes the windows of profiles that have ended; their last samples were drained and the decisions
 * restored before. */
static void end_profiles(struct callbacks *c, uint64_t now_ns)
{
	for (uint32_t i = 0; i < c->instances->plan->nsinks; i++)
		if (c->profile_until_ns[i] && c->profile_until_ns[i] <= now_ns) {
			c->profile_until_ns[i] = 0;
			close_window(c, i);
		}
}

static int act(struct callbacks *c, const struct decision *d, const struct callback_action *a,
	       uint64_t now_ns)
{
	struct decision_cache *cache = decisions_cache(c->instances->sampling->decisions);

	switch (a->kind) {
	case CALLBACK_RATE:
		return decision_set_rate(cache, d->set, d->known, a->hz, now_ns + a->ns);
	case CALLBACK_DROP:
		return decision_drop(cache, d->set, d->known, now_ns + a->ns);
	case CALLBACK_LABEL:
		return decision_add_label(cache, d->set, d->known, &a->label);
	case CALLBACK_PROFILE:
		return begin_profile(c, d, a, now_ns + a->ns);
	}
	return -EINVAL;
}

/* Earlier samples have the period of the earlier rate, so they are drained first. */
static void act_all(struct callbacks *c, const struct view_builder *b,
		    const struct callback_actions *actions, const char *where, uint64_t now_ns)
{
	static const char *const names[] = {[CALLBACK_RATE] = "rate",
					    [CALLBACK_DROP] = "drop",
					    [CALLBACK_LABEL] = "label",
					    [CALLBACK_PROFILE] = "profile"};
	struct agent_sampling *s = c->instances->sampling;
	int failed = 0;

	if (!actions->n)
		return;
	for (size_t i = 0; i < actions->n; i++) {
		const struct callback_action *a = &actions->list[i];
		int r = act(c, b->decisions[a->target], a, now_ns);

		failed = r ? r : failed;
		if (!r)
			metric_add("script_actions_total",
				   "Total number of actions of the script on targets.",
				   METRIC_LABELS("action", names[a->kind]), 1);
	}
	agent_sampling_drain(s);
	decisions_apply(s->decisions, now_ns);
	if (failed)
		log_warning("%s: every: a target could not be changed: %s", where,
			    failed == -ENOSPC ? "it has 64 labels" : strerror(-failed));
}

/* ---- calls ---- */

/* text: NULL, or taken over. */
static void log_failure(struct callback_state *s, const struct plan_callback *p, char *text)
{
	metric_add("callback_errors_total",
		   "Total number of calls of a callback of the script that failed.",
		   METRIC_LABELS("callback", p->where), 1);
	if (text && s->said && !strcmp(text, s->said)) {
		free(text);
	} else {
		log_warning("%s", text ? text : strerror(ENOMEM));
		free(s->said);
		s->said = text;
	}
	if (s->failures == PATIENCE)
		log_warning("%s: %s: it has failed %u times in a row and is called less often",
			    p->where, p->period_ns ? "every" : "on", PATIENCE);
}

/* A call has ended with r. */
static void called(struct callback_state *s, const struct plan_callback *p, int r, char *text)
{
	metric_add("callbacks_total", "Total number of calls of a callback of the script.",
		   METRIC_LABELS("callback", p->where), 1);
	s->failures = r ? s->failures + 1 : 0;
	if (r)
		log_failure(s, p, text);
}

static int call(struct callbacks *c, uint32_t i, uint64_t now_ns, char **text)
{
	struct callback_state *s = &c->states[i];
	struct view_builder b = {.state = s, .seconds = (double)(now_ns - s->called_ns) / 1e9};
	struct callback_actions actions = {0};
	struct callback_view view;
	int r = build_view(&b, c->instances->sampling->decisions);

	*text = NULL;
	if (!r) {
		struct hashmap before = s->cpu;

		s->cpu = b.cpu;
		b.cpu = before;
		s->called_ns = now_ns;
		view = (struct callback_view){b.targets, (uint32_t)b.ntargets};
		r = lua_callback_run(c->instances->plan, i, &view, &actions, text);
		act_all(c, &b, &actions, c->instances->plan->callbacks.list[i].where, now_ns);
		callback_actions_fini(&actions);
	}
	free_view(&b);
	return r;
}

/* The time to the next call. */
static uint64_t wait_of(const struct callback_state *s, uint64_t period_ns)
{
	uint32_t doubled = s->failures < PATIENCE ? 0 : s->failures - PATIENCE + 1;
	uint64_t ns = period_ns << (doubled < 9 ? doubled : 9);

	if (doubled && ns > LONGEST_NS)
		ns = LONGEST_NS > period_ns ? LONGEST_NS : period_ns;
	return ns;
}

static void run(struct callbacks *c, uint32_t i, uint64_t now_ns)
{
	const struct plan_callback *p = &c->instances->plan->callbacks.list[i];
	struct callback_state *s = &c->states[i];
	char *text;
	int r = call(c, i, now_ns, &text);

	called(s, p, r, text);
	s->due_ns += wait_of(s, p->period_ns);
	if (s->due_ns < now_ns)
		s->due_ns = now_ns + wait_of(s, p->period_ns);
}

/* ---- plans ---- */

static void reset(struct callbacks *c)
{
	for (uint32_t i = 0; i < PLAN_MAX_CALLBACKS; i++) {
		hashmap_fini(&c->states[i].cpu);
		free(c->states[i].said);
		c->states[i] = (struct callback_state){0};
	}
}

/* Starts the callbacks of another plan: each is due after its period. */
static void begin(struct callbacks *c, uint64_t now_ns)
{
	const struct plan *p = c->instances->plan;

	reset(c);
	memset(c->profile_until_ns, 0, sizeof(c->profile_until_ns));
	c->generation = c->instances->generation;
	for (uint32_t i = 0; i < p->callbacks.n; i++) {
		c->states[i].called_ns = now_ns;
		c->states[i].due_ns = now_ns + p->callbacks.list[i].period_ns;
	}
}

void callbacks_run_due(struct callbacks *c, uint64_t now_ns)
{
	if (c->generation != c->instances->generation)
		begin(c, now_ns);
	end_profiles(c, now_ns);
	for (uint32_t i = 0; i < c->instances->plan->callbacks.n; i++)
		if (c->instances->plan->callbacks.list[i].period_ns &&
		    now_ns + EARLY_NS >= c->states[i].due_ns)
			run(c, i, now_ns);
}

/* A callback that fails three times in a row also misses profiles, for a time that doubles. */
void callbacks_built(void *arg, const struct plan_instance *sink,
		     const struct fusee_profile *profile)
{
	const struct callback_profile view = {sink->name, profile};
	struct callbacks *c = arg;
	const struct plan *plan = c->instances->plan;
	uint64_t now_ns = clock_now();

	if (c->generation != c->instances->generation)
		begin(c, now_ns);
	for (uint32_t i = 0; i < plan->callbacks.n; i++) {
		struct callback_state *s = &c->states[i];
		char *text;
		int r;

		if (plan->callbacks.list[i].period_ns || now_ns < s->due_ns)
			continue;
		r = lua_callback_profile(plan, i, &view, &text);
		called(s, &plan->callbacks.list[i], r, text);
		s->due_ns = s->failures < PATIENCE ? 0 : now_ns + wait_of(s, SECOND);
	}
}

void callbacks_fini(struct callbacks *c)
{
	reset(c);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/internal/explain.h"

#include <errno.h>
#include <string.h>

#include "agent/internal/state.h"
#include "agent/preview.h"
#include "base/str.h"
#include "config/explain_relabel.h"
#include "base/clock.h"
#include "policy/discovery.h"
#include "target/labelset.h"

struct explained {
	struct fusee_label label;
	struct target_origin origin;
};

struct explaining {
	const struct agent *a;
	struct explained labels[LABELSET_MAX]; /* the labels of targets */
	uint32_t n;
};

/* ---- labels ---- */

static void add(void *arg, const struct fusee_label *l, const struct target_origin *o)
{
	struct explaining *e = arg;

	if (e->n < LABELSET_MAX)
		e->labels[e->n++] = (struct explained){*l, *o};
}

static const struct explained *find(const struct explaining *e, struct fusee_str name)
{
	for (uint32_t i = 0; i < e->n; i++)
		if (str_equal(e->labels[i].label.key, name))
			return &e->labels[i];
	return NULL;
}

static const char *source_name(const struct explaining *e, const struct target_origin *o)
{
	const struct instances *is = &e->a->instances;

	if (o->from.len)
		return "labels";
	for (uint32_t i = 0; i < is->nsources; i++)
		if (discovery_source(is->sources[i].discovery) == o->source)
			return is->sources[i].plan->name;
	return "fusee";
}

/* The origin of the label. */
static void put_way(struct json *j, const struct explained *l)
{
	const struct target_origin *o = &l->origin;
	struct buf text = {0};

	if (o->from.len)
		buf_printf(&text, "label %.*s", (int)o->from.len, o->from.p);
	else if (o->source == TARGET_OWN && o->by.len)
		buf_printf(&text, "%.*s", (int)o->by.len, o->by.p);
	else if (o->source == TARGET_OWN)
		buf_str(&text, "what the kernel says");
	else if (o->match == FUSEE_MATCH_PID)
		buf_str(&text, "pid");
	else
		buf_printf(&text, "%s %.*s",
			   o->match == FUSEE_MATCH_CGROUP ? "control group" : "label",
			   (int)o->by.len, o->by.p);
	json_buf(j, "by", &text);
	buf_fini(&text);
}

static bool is_of_callback(const struct cached_decision *c, const struct fusee_label *l)
{
	for (const struct added_label *a = c->added; a; a = a->next)
		if (a->texts == l->key.p)
			return true;
	return false;
}

/* Appends a label of the samples. c NULL: there is no decision. */
static void put_label(const struct explaining *e, const struct cached_decision *c,
		      const struct fusee_label *l, struct json *j)
{
	const struct explained *said = find(e, l->key);

	json_open(j, NULL);
	json_str(j, "name", l->key);
	json_str(j, "value", l->str);
	if (said && str_equal(said->label.str, l->str)) {
		json_text(j, "from", source_name(e, &said->origin));
		put_way(j, said);
	} else {
		json_text(j, "from", c && is_of_callback(c, l) ? "callback" : "policy");
		json_text(j, "by", said ? "in place of what a discovery says" : "its answer");
	}
	json_end(j);
}

static void put_labels(const struct explaining *e, const struct cached_decision *c, struct json *j)
{
	uint32_t n = c ? c->d.nlabels : e->n;

	json_list(j, "labels");
	for (uint32_t i = 0; i < n; i++)
		put_label(e, c, c ? &c->d.labels[i] : &e->labels[i].label, j);
	json_end(j);
}

/* ---- the decision ---- */

/* Seconds from now on, at least 1. */
static unsigned long long seconds_to(uint64_t until_ns)
{
	uint64_t now = clock_now();

	return until_ns > now ? (until_ns - now + 999999999) / 1000000000 : 1;
}

static void why_not(const struct plan *plan, const struct cached_decision *c, struct buf *b)
{
	if (c->drop_until_ns)
		buf_printf(b, "a callback has dropped it for %llu s more",
			   seconds_to(c->drop_until_ns));
	else if (!c->d.known && !plan->unknown_keep)
		buf_str(b, "no discovery knows it, and the plan says unknown \"drop\"");
	else if (c->d.refused)
		buf_str(b, "the policy refuses targets with these labels");
	else
		buf_str(b, "no sink receives it");
}

static void why(const struct agent *a, const struct decision_process *p, struct buf *b)
{
	const struct cached_decision *c = p->decision;
	const struct plan *plan = a->instances.plan;

	if (p->kernel)
		buf_str(b, "it is a kernel thread");
	else if (!c)
		buf_str(b, "it has no decision yet, for want of memory");
	else if (!c->d.profile)
		why_not(plan, c, b);
	else if (c->rate_until_ns)
		buf_printf(b, "a callback has set the rate for %llu s more",
			   seconds_to(c->rate_until_ns));
	else if (plan->has_policy && (c->d.known || plan->unknown_keep))
		buf_str(b, "the policy's answer for these labels");
	else
		buf_str(b, "the plan has no policy");
}

static void put_decision(const struct agent *a, const struct decision_process *p, struct json *j)
{
	static const struct decision none;
	const struct decision *d = p->decision ? &p->decision->d : &none;
	struct buf text = {0};

	json_open(j, "decision");
	json_flag(j, "profile", d->profile);
	json_printf(j, "hz", "%g", d->hz);
	json_printf(j, "share", "%.4f", cpu_budget_share(&a->budget));
	decision_sinks_json(a->instances.plan, d, j);
	why(a, p, &text);
	json_buf(j, "why", &text);
	json_end(j);
	buf_fini(&text);
}

int explain_json(const struct agent *a, pid_t pid, struct buf *b)
{
	struct explaining e = {.a = a};
	struct json j = {.out = b, .spaced = true};
	struct decision_process p;
	int r;

	discoveries_find_labels(a->sampling.discoveries, pid); /* all of them are shown */
	decisions_refresh(a->sampling.decisions);
	r = decisions_process(a->sampling.decisions, pid, &p);
	if (!r && !p.kernel)
		r = targets_explain(a->sampling.targets, &p.target, add, &e);
	if (r)
		return r;
	json_int(&j, "pid", pid);
	json_text(&j, "process", p.target.name);
	put_labels(&e, p.decision, &j);
	put_decision(a, &p, &j);
	if (p.decision)
		explain_relabel(a->instances.plan, p.decision->d.labels, p.decision->d.nlabels, &j);
	return b->error;
}

// SPDX-License-Identifier: Apache-2.0
#include "config/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/credentials.h"
#include "bpf/sampler.h"
#include "config/settings.h"
#include <fusee/helpers.h>

/* Without the passwords of URLs. name: NULL in a list. */
static void put_text(struct json *j, const char *name, const char *option, const char *value)
{
	char *shown = strdup(value);

	if (shown)
		credentials_hide_option(option, shown);
	else
		j->out->error = -ENOMEM;
	json_text(j, name, shown ? shown : "");
	free(shown);
}

/* List or map: names are a map's. */
static void put_pairs(struct json *j, const char *option, const struct option_value *v, bool map)
{
	for (uint32_t i = 0; i < v->n; i++) {
		const struct option_pair *p = &v->pairs[i];

		if (map)
			json_key(j, fusee_text(p->key));
		put_text(j, NULL, option,
			 map && credentials_are_named(p->key) ? "(hidden)" : p->value);
	}
}

static void put_value(struct json *j, const struct fusee_option *o, const struct option_value *v)
{
	/* an empty list's default is ""; other defaults are shown as they are written */
	bool none = v->kind == OPTION_TEXT && !*v->text;

	if (o->type == FUSEE_SECRET) {
		json_text(j, o->name, "(hidden)");
	} else if (v->kind != OPTION_TEXT ||
		   (none && (o->type == FUSEE_LIST || o->type == FUSEE_MAP))) {
		(o->type == FUSEE_MAP ? json_open : json_list)(j, o->name);
		if (!none)
			put_pairs(j, o->name, v, o->type == FUSEE_MAP);
		json_end(j);
	} else if (o->type == FUSEE_BOOL) {
		json_printf(j, o->name, "%s", v->text);
	} else if (o->type == FUSEE_INT) { /* JSON has no "007" */
		json_int(j, o->name, strtoll(v->text, NULL, 10));
	} else {
		put_text(j, o->name, o->name, v->text);
	}
}

static const struct option_value *find_value(const struct plan_instance *p, const char *name)
{
	for (uint32_t i = 0; i < p->noptions; i++)
		if (!strcmp(p->options[i].name, name))
			return &p->options[i].value;
	return NULL;
}

void plan_options_json(const struct plan_instance *p, struct json *j)
{
	const struct fusee_table *all = &p->descriptor->options;

	json_open(j, "options");
	for (uint32_t i = 0; i < all->n; i++) {
		const struct fusee_option *o = FUSEE_AT(struct fusee_option, *all, i);
		const struct option_value *v = find_value(p, o->name);
		struct option_value def = {.kind = OPTION_TEXT, .text = (char *)o->def};

		put_value(j, o, v ? v : &def);
	}
	json_end(j);
}

static void put_list(struct json *j, const char *name, char *const *texts)
{
	json_list(j, name);
	for (; *texts; texts++)
		json_text(j, NULL, *texts);
	json_end(j);
}

static void put_table(struct json *j, const char *name, struct fusee_table texts)
{
	json_list(j, name);
	for (uint32_t i = 0; i < texts.n; i++)
		json_str(j, NULL, *FUSEE_AT(struct fusee_str, texts, i));
	json_end(j);
}

static void put_servers(struct json *j, const char *name, struct fusee_table addresses)
{
	json_list(j, name);
	for (uint32_t i = 0; i < addresses.n; i++)
		put_text(j, NULL, "server", FUSEE_AT(struct fusee_str, addresses, i)->p);
	json_end(j);
}

static void put_rule(struct json *j, const struct relabel_rule *r)
{
	json_open(json_line(j, 0), NULL);
	json_text(j, "action", relabel_action_names[r->action]);
	json_list(j, "source_labels");
	for (uint32_t i = 0; i < r->nsource; i++)
		json_text(j, NULL, r->source_labels[i]);
	json_end(j);
	json_text(j, "separator", r->separator);
	json_text(j, "regex", r->pattern);
	json_text(j, "target_label", r->target_label);
	json_text(j, "replacement", r->replacement);
	json_uint(j, "modulus", r->modulus);
	json_end(j);
}

/* Nothing where the script has none. */
static void put_rules(struct json *j, const struct relabel_rules *all)
{
	if (!all || !all->n)
		return;
	json_list(j, "relabel");
	for (uint32_t i = 0; i < all->n; i++)
		put_rule(j, &all->rules[i]);
	json_end(j);
}

static void put_sink(struct json *j, const struct plan_instance *p)
{
	json_printf(j, "every_s", "%.9g", (double)p->every_ns / 1e9);
	json_uint(j, "queue_bytes", p->queue_bytes);
	json_text(j, "per", p->per_target ? "target" : "window");
	json_text(j, "names", p->server_names ? "server" : "local");
	json_flag(j, "default", p->by_default);
	json_text(j, "spool", p->spool ? p->spool : "");
	json_uint(j, "spool_bytes", p->spool_bytes);
	json_printf(j, "spool_age_s", "%.9g", (double)p->spool_age_ns / 1e9);
	json_printf(j, "spool_sync_s", "%.9g", (double)p->spool_sync_ns / 1e9);
	put_list(j, "omit", p->omit);
	put_rules(j, p->relabel);
}

static void put_instances(struct json *j, const char *name, struct plan_instance *const *all,
			  uint32_t n)
{
	json_list(json_line(j, 0), name);
	for (uint32_t i = 0; i < n; i++) {
		json_open(json_line(j, 0), NULL);
		json_text(j, "name", all[i]->name);
		json_text(j, "plugin", all[i]->plugin);
		json_text(j, "where", all[i]->where);
		if (all[i]->kind == FUSEE_SINK)
			put_sink(j, all[i]);
		plan_options_json(all[i], j);
		json_end(j);
	}
	json_end(j);
}

/* Nothing where the script has none. */
static void put_callbacks(struct json *j, const struct plan *p)
{
	if (!p->callbacks.n)
		return;
	json_list(json_line(j, 0), "callbacks");
	for (uint32_t i = 0; i < p->callbacks.n; i++) {
		uint64_t period = p->callbacks.list[i].period_ns;

		json_open(json_line(j, 0), NULL);
		if (period)
			json_printf(j, "every_s", "%.9g", (double)period / 1e9);
		else
			json_text(j, "on", "profile");
		json_text(j, "where", p->callbacks.list[i].where);
		json_end(j);
	}
	json_end(j);
}

static void put_sample(struct json *j, const struct plan *p)
{
	json_open(json_line(j, 0), "sample");
	json_open(j, "cpu");
	json_printf(j, "hz", "%.15g", p->hz);
	json_text(j, "sampler", sampler_choices[p->sampler]);
	json_uint(j, "stack_bytes", p->limits.stack_bytes);
	json_uint(j, "ring_bytes", p->limits.ring_bytes);
	json_flag(j, "kernel", p->kernel);
	json_flag(j, "threads", p->threads);
	json_flag(j, "inlines", p->inlines);
	json_end(j);
	if (plan_hit_bytes(p)) {
		json_open(j, p->samplers.inuse_bytes ? "inuse" : "alloc");
		json_uint(j, "bytes", plan_hit_bytes(p));
		json_end(j);
	}
	if (p->samplers.nprobes)
		json_list(j, "probes");
	for (uint32_t i = 0; i < p->samplers.nprobes; i++) {
		json_open(j, NULL);
		json_text(j, "probe", p->samplers.probes[i].text);
		json_text(j, "name", p->samplers.probes[i].name);
		json_uint(j, "period", p->samplers.probes[i].period);
		json_text(j, "where", p->samplers.probes[i].where);
		json_end(j);
	}
	if (p->samplers.nprobes)
		json_end(j);
	for (uint32_t i = 0; i < p->samplers.n; i++) {
		json_open(j, p->samplers.list[i]->plugin);
		json_uint(j, "period", p->samplers.list[i]->period);
		plan_options_json(p->samplers.list[i], j);
		json_end(j);
	}
	json_end(j);
}

static void put_metrics(struct json *j, const struct plan *p)
{
	json_open(json_line(j, 0), "metrics");
	json_text(j, "listen", p->listen);
	put_table(j, "hosts", p->pulls.hosts);
	json_flag(j, "pull", p->pulls.served);
	if (p->pulls.served) {
		json_int(j, "pulls", p->pulls.max);
		json_text(j, "pull_names", p->pulls.names == NAMES_SERVER ? "server" : "local");
		put_table(j, "pull_omit", p->pulls.omit);
	}
	json_end(j);
}

int plan_json(const struct plan *p, struct buf *b)
{
	struct json j = {.out = b};

	json_open(&j, NULL);
	json_text(&j, "script", p->path);
	put_sample(&j, p);
	json_text(json_line(&j, 0), "unknown", p->unknown_keep ? "keep" : "drop");
	json_flag(&j, "policy", p->has_policy);
	put_callbacks(&j, p);
	put_rules(&j, p->relabel);
	put_metrics(&j, p);
	json_open(&j, "control");
	json_text(&j, "path", p->control);
	json_end(&j);
	if (p->limits.budget_cpu) {
		json_open(json_line(&j, 0), "budget");
		json_printf(&j, "cpu", "%.15g", (double)p->limits.budget_cpu / 1e6);
		json_end(&j);
	}
	if (p->debuginfod.n) {
		json_open(json_line(&j, 0), "symbols");
		put_servers(&j, "debuginfod", p->debuginfod);
		json_end(&j);
	}
	json_open(json_line(&j, 0), "unwind");
	put_list(&j, "without", p->without);
	json_end(&j);
	if (p->nunwinders)
		put_instances(&j, "unwinders", p->unwinders, p->nunwinders);
	put_instances(&j, "discoveries", p->discoveries, p->ndiscoveries);
	put_instances(&j, "sinks", p->sinks, p->nsinks);
	json_end(&j);
	buf_str(b, "\n");
	return b->error;
}

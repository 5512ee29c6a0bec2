// SPDX-License-Identifier: Apache-2.0
#include "config/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "bpf/sampler.h"
#include "config/settings.h"

static void put_pairs(struct buf *b, const struct option_value *v, bool map)
{
	buf_str(b, map ? "{" : "[");
	for (uint32_t i = 0; i < v->n; i++) {
		buf_str(b, i ? "," : "");
		if (map) {
			json_text(b, v->pairs[i].key);
			buf_str(b, ":");
		}
		json_text(b, v->pairs[i].value);
	}
	buf_str(b, map ? "}" : "]");
}

static void put_value(struct buf *b, const struct fusee_option *o, const struct option_value *v)
{
	if (o->type == FUSEE_SECRET)
		json_text(b, "(hidden)");
	else if (v->kind != OPTION_TEXT)
		put_pairs(b, v, o->type == FUSEE_MAP);
	else if (o->type == FUSEE_BOOL)
		buf_str(b, v->text);
	else if (o->type == FUSEE_INT) /* JSON has no "007" */
		buf_printf(b, "%lld", strtoll(v->text, NULL, 10));
	else
		json_text(b, v->text);
}

static const struct option_value *find_value(const struct plan_instance *p, const char *name)
{
	for (uint32_t i = 0; i < p->noptions; i++)
		if (!strcmp(p->options[i].name, name))
			return &p->options[i].value;
	return NULL;
}

void plan_options_json(const struct plan_instance *p, struct buf *b)
{
	const struct fusee_table *all = &p->descriptor->options;

	buf_str(b, ",\"options\":{");
	for (uint32_t i = 0; i < all->n; i++) {
		const struct fusee_option *o = FUSEE_AT(struct fusee_option, *all, i);
		const struct option_value *v = find_value(p, o->name);
		struct option_value def = {.kind = OPTION_TEXT, .text = (char *)o->def};

		buf_str(b, i ? "," : "");
		json_text(b, o->name);
		buf_str(b, ":");
		/* an empty list's default is ""; other defaults are shown as they are written */
		if (!v && !*o->def && (o->type == FUSEE_LIST || o->type == FUSEE_MAP))
			buf_str(b, o->type == FUSEE_MAP ? "{}" : "[]");
		else
			put_value(b, o, v ? v : &def);
	}
	buf_str(b, "}");
}

static void put_text(struct buf *b, const char *name, const char *value)
{
	buf_printf(b, ",\"%s\":", name);
	json_text(b, value);
}

static void put_rule(struct buf *b, const struct relabel_rule *r)
{
	buf_printf(b, "{\"action\":\"%s\",\"source_labels\":[", relabel_action_names[r->action]);
	for (uint32_t i = 0; i < r->nsource; i++) {
		buf_str(b, i ? "," : "");
		json_text(b, r->source_labels[i]);
	}
	buf_str(b, "]");
	put_text(b, "separator", r->separator);
	put_text(b, "regex", r->pattern);
	put_text(b, "target_label", r->target_label);
	put_text(b, "replacement", r->replacement);
	buf_printf(b, ",\"modulus\":%" PRIu64 "}", r->modulus);
}

/* Nothing where the script has none. */
static void put_rules(struct buf *b, const struct relabel_rules *all)
{
	for (uint32_t i = 0; all && i < all->n; i++) {
		buf_str(b, i ? ",\n" : ",\"relabel\":[\n");
		put_rule(b, &all->rules[i]);
	}
	buf_str(b, all && all->n ? "]" : "");
}

static void put_instance(struct buf *b, const struct plan_instance *p)
{
	buf_str(b, "\n{\"name\":");
	json_text(b, p->name);
	buf_str(b, ",\"plugin\":");
	json_text(b, p->plugin);
	buf_str(b, ",\"where\":");
	json_text(b, p->where);
	if (p->kind == FUSEE_SINK) {
		buf_printf(b,
			   ",\"every_s\":%.9g,\"queue_bytes\":%" PRIu64 ",\"per\":\"%s\""
			   ",\"names\":\"%s\",\"default\":%s,\"spool\":",
			   (double)p->every_ns / 1e9, p->queue_bytes,
			   p->per_target ? "target" : "window",
			   p->server_names ? "server" : "local", p->by_default ? "true" : "false");
		json_text(b, p->spool);
		buf_printf(b,
			   ",\"spool_bytes\":%" PRIu64 ",\"spool_age_s\":%.9g,"
			   "\"spool_sync_s\":%.9g,\"omit\":[",
			   p->spool_bytes, (double)p->spool_age_ns / 1e9,
			   (double)p->spool_sync_ns / 1e9);
		for (char **o = p->omit; *o; o++) {
			buf_str(b, o == p->omit ? "" : ",");
			json_text(b, *o);
		}
		buf_str(b, "]");
		put_rules(b, p->relabel);
	}
	plan_options_json(p, b);
	buf_str(b, "}");
}

static void put_instances(struct buf *b, const char *name, struct plan_instance *const *all,
			  uint32_t n)
{
	buf_printf(b, ",\n\"%s\":[", name);
	for (uint32_t i = 0; i < n; i++) {
		buf_str(b, i ? "," : "");
		put_instance(b, all[i]);
	}
	buf_str(b, "]");
}

static const char *boolean(bool b)
{
	return b ? "true" : "false";
}

/* Nothing where the script has none. */
static void put_callbacks(struct buf *b, const struct plan *p)
{
	for (uint32_t i = 0; i < p->callbacks.n; i++) {
		buf_str(b, i ? ",\n{" : ",\n\"callbacks\":[\n{");
		if (p->callbacks.list[i].period_ns)
			buf_printf(b, "\"every_s\":%.9g",
				   (double)p->callbacks.list[i].period_ns / 1e9);
		else
			buf_str(b, "\"on\":\"profile\"");
		buf_str(b, ",\"where\":");
		json_text(b, p->callbacks.list[i].where);
		buf_str(b, "}");
	}
	buf_str(b, p->callbacks.n ? "]" : "");
}

static void put_pulls(struct buf *b, const struct plan_pulls *p)
{
	buf_printf(b, ",\"pulls\":%" PRId64 ",\"pull_names\":\"%s\",\"pull_omit\":[", p->max,
		   p->names == NAMES_SERVER ? "server" : "local");
	for (uint32_t i = 0; i < p->omit.n; i++) {
		buf_str(b, i ? "," : "");
		json_text(b, FUSEE_AT(struct fusee_str, p->omit, i)->p);
	}
	buf_str(b, "]");
}

static void put_metrics(struct buf *b, const struct plan *p)
{
	buf_str(b, ",\n\"metrics\":{\"listen\":");
	json_text(b, p->listen);
	buf_str(b, ",\"hosts\":[");
	for (uint32_t i = 0; i < p->hosts.n; i++) {
		buf_str(b, i ? "," : "");
		json_text(b, FUSEE_AT(struct fusee_str, p->hosts, i)->p);
	}
	buf_printf(b, "],\"pull\":%s", boolean(p->pulls.served));
	if (p->pulls.served)
		put_pulls(b, &p->pulls);
	buf_str(b, "}");
}

static void put_servers(struct buf *b, const struct plan *p)
{
	for (uint32_t i = 0; i < p->debuginfod.n; i++) {
		buf_str(b, i ? "," : ",\n\"symbols\":{\"debuginfod\":[");
		json_text(b, FUSEE_AT(struct fusee_str, p->debuginfod, i)->p);
	}
	buf_str(b, p->debuginfod.n ? "]}" : "");
}

int plan_json(const struct plan *p, struct buf *b)
{
	buf_str(b, "{\"script\":");
	if (p->path)
		json_text(b, p->path);
	else
		buf_str(b, "null");
	buf_printf(
		b,
		",\n\"sample\":{\"cpu\":{\"hz\":%.15g,\"sampler\":\"%s\",\"stack_bytes\":%" PRIu64
		",\"ring_bytes\":%" PRIu64 ",\"kernel\":%s,\"threads\":%s,\"inlines\":%s}}",
		p->hz, sampler_choices[p->sampler], p->limits.stack_bytes, p->limits.ring_bytes,
		boolean(p->kernel), boolean(p->threads), boolean(p->inlines));
	buf_printf(b, ",\n\"unknown\":\"%s\",\"policy\":%s", p->unknown_keep ? "keep" : "drop",
		   boolean(p->has_policy));
	put_callbacks(b, p);
	put_rules(b, p->relabel);
	put_metrics(b, p);
	buf_str(b, ",\"control\":{\"path\":");
	json_text(b, p->control);
	buf_str(b, "}");
	if (p->limits.budget_cpu)
		buf_printf(b, ",\n\"budget\":{\"cpu\":%.15g}", (double)p->limits.budget_cpu / 1e6);
	put_servers(b, p);
	buf_str(b, ",\n\"unwind\":{\"without\":[");
	for (char **w = p->without; *w; w++) {
		buf_str(b, w == p->without ? "" : ",");
		json_text(b, *w);
	}
	buf_str(b, "]}");
	if (p->nunwinders)
		put_instances(b, "unwinders", p->unwinders, p->nunwinders);
	put_instances(b, "discoveries", p->discoveries, p->ndiscoveries);
	put_instances(b, "sinks", p->sinks, p->nsinks);
	buf_str(b, "}\n");
	return b->error;
}

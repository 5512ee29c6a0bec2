/* SPDX-License-Identifier: Apache-2.0 */
/* fusee check: prints the plan of a script and its decisions for the processes that run now, or its
 * errors. Samples nothing and creates no sink. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include <json-c/json.h>

#include "agent/preview.h"
#include "base/credentials.h"
#include "base/log.h"
#include "cli/cli.h"
#include "console/grid.h"
#include "console/options.h"
#include "console/plugin_list.h"
#include "ctl/target_table.h"
#include "config/help.h"
#include "lua/script.h"
#include "config/settings.h"
#include "hooks/hooks.h"

#define WAIT_NS 5000000000u /* the longest wait for the discoveries to find targets */
#define MAX_ROWS 40         /* of the table */
#define DEFAULT_SCRIPT "/etc/fusee/fusee.lua"

/* Without the passwords of URLs. */
static void put_value(struct buf *b, const char *option, const char *value)
{
	char *shown = strdup(value);

	if (shown)
		credentials_hide_option(option, shown);
	else
		b->error = -ENOMEM;
	buf_str(b, shown ? shown : "");
	free(shown);
}

/* "name=value name=value", without the values of secrets and of maps. */
static void put_options(struct buf *b, const struct plan_instance *p)
{
	for (uint32_t i = 0; i < p->noptions; i++) {
		const struct instance_option *o = &p->options[i];
		const struct fusee_option *known = options_find(&p->descriptor->options, o->name);
		bool secret = known && known->type == FUSEE_SECRET;

		buf_printf(b, "%s%s=", i ? " " : "", o->name);
		if (secret)
			buf_str(b, "(hidden)");
		else if (o->value.kind == OPTION_TEXT)
			put_value(b, o->name, o->value.text);
		for (uint32_t k = 0; k < o->value.n && !secret; k++) {
			buf_str(b, k ? "," : "");
			put_value(b, o->name,
				  o->value.pairs[k].key ? o->value.pairs[k].key
							: o->value.pairs[k].value);
		}
	}
}

static void put_instance(struct buf *b, const struct plan_instance *p, int width,
			 unsigned int columns)
{
	struct buf facts = {0};

	buf_printf(b, "  %-*s  %s\n", width, p->name, *p->where ? p->where : "by default");
	if (p->kind == FUSEE_SINK) {
		buf_printf(&facts, "every %gs, a profile for each %s, queue ",
			   (double)p->every_ns / 1e9, p->per_target ? "target" : "window");
		help_size(&facts, p->queue_bytes);
		if (*p->spool) {
			buf_printf(&facts, ", spool %s, ", p->spool);
			help_size(&facts, p->spool_bytes);
			buf_printf(&facts, " and %gs at most", (double)p->spool_age_ns / 1e9);
		}
		if (p->server_names)
			buf_str(&facts, ", names by the server");
		if (!p->by_default)
			buf_str(&facts, ", not by default");
		for (char **o = p->omit; *o; o++)
			buf_printf(&facts, "%s%s", o == p->omit ? ", without " : " ", *o);
		if (p->relabel)
			buf_printf(&facts, ", rules of relabeling: %u", p->relabel->n);
		buf_str(&facts, "\n");
	}
	put_options(&facts, p);
	buf_add(&facts, "", 1);
	if (facts.error)
		b->error = -ENOMEM;
	else
		help_wrap(b, facts.p, 6, columns);
	buf_fini(&facts);
}

static void put_instances(struct buf *b, struct plan_instance *const *all, uint32_t n,
			  unsigned int columns)
{
	int width = 0;

	for (uint32_t i = 0; i < n; i++)
		if ((int)strlen(all[i]->name) > width)
			width = (int)strlen(all[i]->name);
	for (uint32_t i = 0; i < n; i++)
		put_instance(b, all[i], width, columns);
}

static void put_metrics(struct buf *b, const struct plan *p)
{
	buf_printf(b, "metrics   %s", *p->listen ? p->listen : "not served");
	if (p->pulls.served)
		buf_printf(b, ", and profiles for who may connect%s",
			   p->pulls.names == NAMES_SERVER ? ", names by the server" : "");
	for (uint32_t i = 0; p->pulls.served && i < p->pulls.omit.n; i++)
		buf_printf(b, "%s%s", i ? " " : ", without ",
			   FUSEE_AT(struct fusee_str, p->pulls.omit, i)->p);
	buf_str(b, "\n");
}

static void put_sampler(struct buf *b, const struct plan_instance *p)
{
	const struct fusee_sampler_ops *ops = p->descriptor->ops;

	if (ops->flags & FUSEE_SAMPLER_TIME)
		buf_printf(b, "          %s at %g Hz\n", p->plugin, 1e9 / (double)p->period);
	else
		buf_printf(b, "          %s, a sample for each %llu\n", p->plugin,
			   (unsigned long long)p->period);
}

static void put_probe(struct buf *b, const struct plan_probe *p)
{
	buf_printf(b, "          %s", p->name);
	if (strcmp(p->name, p->text) != 0)
		buf_printf(b, ", %s", p->text);
	if (p->period > 1)
		buf_printf(b, ", a sample for each %llu by chance", (unsigned long long)p->period);
	buf_str(b, "\n");
}

static int put_plan(struct buf *b, const struct plan *p, unsigned int columns)
{
	buf_printf(b, "sample    cpu at %g Hz%s%s%s\n", p->hz, p->kernel ? ", kernel too" : "",
		   p->threads ? ", by thread" : "", p->inlines ? "" : ", without inlines");
	for (uint32_t i = 0; i < p->samplers.n; i++)
		put_sampler(b, p->samplers.list[i]);
	for (uint32_t i = 0; i < p->samplers.nprobes; i++)
		put_probe(b, &p->samplers.probes[i]);
	buf_printf(b, "policy    %s; unknown processes: %s\n",
		   p->has_policy ? "the script's" : "none, everything is profiled",
		   p->unknown_keep ? "keep" : "drop");
	for (uint32_t i = 0; i < p->callbacks.n; i++) {
		if (p->callbacks.list[i].period_ns)
			buf_printf(b, "every     %gs",
				   (double)p->callbacks.list[i].period_ns / 1e9);
		else
			buf_str(b, "on        profile");
		buf_printf(b, "  %s\n", p->callbacks.list[i].where);
	}
	if (*p->without) {
		buf_str(b, "unwind    without");
		for (char **w = p->without; *w; w++)
			buf_printf(b, " %s", *w);
		buf_str(b, "\n");
	}
	if (p->nunwinders)
		buf_str(b, "unwind\n");
	put_instances(b, p->unwinders, p->nunwinders, columns);
	if (p->relabel)
		buf_printf(b, "relabel   %u rules for all sinks  %s\n", p->relabel->n,
			   p->relabel->where);
	if (p->limits.budget_cpu)
		buf_printf(b, "budget    %g%% of a CPU\n", (double)p->limits.budget_cpu / 1e4);
	put_metrics(b, p);
	buf_printf(b, "control   %s\n", p->control);
	buf_printf(b, "discover%s\n", p->ndiscoveries ? "" : "  nothing");
	put_instances(b, p->discoveries, p->ndiscoveries, columns);
	buf_str(b, "sinks\n");
	put_instances(b, p->sinks, p->nsinks, columns);
	return b->error;
}

/* ---- the processes that run now ---- */

struct check {
	bool json, plan;
};

static void put_running(struct buf *b, const struct preview *p)
{
	uint32_t profiled, n = preview_processes(p, &profiled);
	struct buf targets = {0};
	struct json_object *list;

	buf_printf(b, "\nprocesses that run now: %u, of which %u would be profiled\n", n, profiled);
	if (geteuid())
		buf_printf(b,
			   "  (as user %u: programs of other users are known by the names of their "
			   "main threads;\n  sudo fusee check sees what an agent of root sees)\n",
			   (unsigned int)geteuid());
	if (preview_failed(p))
		buf_printf(b, "  (without the targets of the discoveries that failed: %u)\n",
			   preview_failed(p));
	preview_targets(p, NULL, &(struct json){.out = &targets});
	buf_add(&targets, "", 1);
	list = targets.error ? NULL : json_tokener_parse(targets.p);
	if (list)
		target_table(list, grid_width(), MAX_ROWS, b);
	else
		b->error = -ENOMEM;
	json_object_put(list);
	buf_fini(&targets);
}

/* Appends a member to the plan's object. */
static void put_running_json(struct buf *b, const struct preview *p)
{
	uint32_t profiled, n = preview_processes(p, &profiled);
	struct json j = {.out = b, .more = true};

	b->len -= strlen("}\n");
	json_open(json_line(&j, 0), "running");
	json_uint(&j, "processes", n);
	json_uint(&j, "profiled", profiled);
	json_uint(&j, "discoveries_failed", preview_failed(p));
	json_uint(&j, "policy_errors", preview_wrong(p));
	preview_targets(p, "targets", &j);
	json_end(&j);
	json_end(&j);
	buf_str(b, "\n");
}

/* ---- all of it ---- */

static int show(const struct plan *p, const struct preview *running, bool json)
{
	struct buf b = {0};
	int r = json ? plan_json(p, &b) : put_plan(&b, p, plugin_list_columns());

	if (!r && running && json)
		put_running_json(&b, running);
	else if (!r && running)
		put_running(&b, running);
	r = r ? r : b.error;
	if (!r)
		r = buf_write(&b, 1);
	buf_fini(&b);
	if (r && r != -EPIPE)
		log_error("cannot write the plan: %s", strerror(-r));
	return r ? EXIT_FAILURE : 0;
}

static int check_plan(const struct plan *plan, const struct check *o)
{
	struct preview *running = NULL;
	int r = o->plan ? 0 : preview_new(&running, plan, WAIT_NS);

	if (r)
		log_warning("the processes that run now cannot be read: %s", strerror(-r));
	r = show(plan, running, o->json);
	if (!r && running && preview_wrong(running)) {
		log_error("wrong answers of the policy: %u", preview_wrong(running));
		r = EX_CONFIG;
	}
	preview_free(running);
	return r;
}

static int check(const char *path, const struct check *o)
{
	struct plugin_folder folder;
	struct plan_errors errors;
	struct plan *plan;
	int r = plugin_list_open(&folder);

	if (r)
		return r;
	r = plan_from_script(&plan, path, &folder, &errors);
	if (!r)
		r = hooks_check(&plan, &errors);
	for (uint32_t i = 0; i < errors.n; i++)
		log_error("%s", errors.texts[i]);
	if (r && !errors.n)
		log_error("%s: %s", path, strerror(-r));
	if (!r) {
		r = check_plan(plan, o);
		plan_free(plan);
	} else {
		r = r == -EINVAL ? EX_CONFIG : r == -ENOMEM ? EX_OSERR : EX_NOINPUT;
	}
	plan_errors_fini(&errors);
	plugin_folder_close(&folder);
	return r;
}

static const struct cli_option options[] = {
	{"json", 0, NULL, "the complete plan, with defaults and lines of the script, as JSON",
	 CLI_TRUE, .offset = offsetof(struct check, json)},
	{"plan", 0, NULL, "the plan only: no process is read and no discovery runs", CLI_TRUE,
	 .offset = offsetof(struct check, plan)},
};

const struct cli_command check_command = {
	.name = "check",
	.does = "check the script of an agent, and what it would profile",
	.usage = "fusee check [--json] [--plan] [FILE]\n"
		 "Checks the script of an agent, " DEFAULT_SCRIPT " if none is named: prints its\n"
		 "plan and what it would do with the processes that run now, or all that is wrong, "
		 "and\nexits with 78. Discoveries run once; nothing is sampled or sent.\n",
	CLI_OPTIONS(options),
	.operand = "FILE",
};

int cmd_check(int argc, char **argv)
{
	struct check o = {0};
	int first, r = cli_parse(&check_command, &o, argc, argv, &first);

	if (r)
		return r < 0 ? 0 : r;
	if (argc - first > 1)
		return cli_bad_usage(&check_command, "one script at a time");
	return check(first < argc ? argv[first] : DEFAULT_SCRIPT, &o);
}

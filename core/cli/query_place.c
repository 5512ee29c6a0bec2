/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/internal/query_place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/buf.h"
#include "base/log.h"
#include "cli/cli.h"
#include "console/plugin_list.h"
#include "cli/internal/query_agent.h"
#include "config/flags.h"
#include "store/place.h"

static bool is_bucket(const char *place)
{
	return !strncmp(place, "s3://", 5);
}

/* "parquet:dir=,bucket=PLACE,OPTIONS": with an empty `dir`, because the sink would delete old files
 * of a folder. NULL: no memory. */
static char *make_spec(const char *place, const char *options)
{
	struct buf b = {0};

	buf_str(&b, "parquet:dir=,bucket=");
	for (const char *p = place; *p; p++)
		buf_printf(&b, "%s%c", *p == ',' || *p == '\\' ? "\\" : "", *p);
	if (options && *options)
		buf_printf(&b, ",%s", options);
	buf_add(&b, "", 1);
	if (b.error)
		buf_fini(&b);
	return b.p;
}

static int make_plan(struct plan **plan, const char *who, const struct plugin_folder *folder,
		     const char *spec)
{
	const struct plan_flags flags = {.sinks = &spec, .nsinks = 1};
	struct plan_errors errors = {0};
	int r = plan_from_flags(plan, &flags, folder, &errors);

	for (uint32_t i = 0; i < errors.n; i++)
		log_error("%s: %s", who, errors.texts[i]);
	if (r && !errors.n)
		log_error("%s: %s", who, strerror(-r));
	plan_errors_fini(&errors);
	return !r ? 0 : r == -ENOMEM ? EX_OSERR : EX_USAGE;
}

static int make_store(struct store **ret, const char *who, const struct plan_instance *p,
		      const char *place)
{
	const struct instance_options o = {
		.name = place, .where = "", .options = p->options, .n = p->noptions};
	const struct fusee_sink_ops *ops = p->descriptor->ops;
	struct fusee_instance *instance;
	char *text = NULL;
	int r;

	if (!FUSEE_HAS(ops, read) || !ops->read) {
		log_error("%s: this build of sink.parquet can't read a bucket: rebuild it", who);
		return EX_UNAVAILABLE;
	}
	r = instance_new(&instance, p->descriptor, &plugin_host_base, &o, &text);
	if (r)
		log_error("%s: %s", who, text ? text : strerror(-r));
	free(text);
	if (r)
		return r == -ENOMEM ? EX_OSERR : EX_CONFIG;
	r = place_open_bucket(ret, instance);
	if (r)
		log_error("%s: %s", who, strerror(-r));
	return r ? EX_OSERR : 0;
}

static int open_bucket(struct store **ret, const char *who, const char *place, const char *options)
{
	struct plugin_folder folder;
	char *spec = make_spec(place, options);
	struct plan *plan = NULL;
	int r = spec ? plugin_list_open(&folder) : EX_OSERR;

	if (r) {
		free(spec);
		return r;
	}
	r = make_plan(&plan, who, &folder, spec);
	if (!r)
		r = make_store(ret, who, plan->sinks[0], place);
	plan_free(plan);
	plugin_folder_close(&folder);
	free(spec);
	return r;
}

static int open_folder(struct store **ret, const char *who, const char *place)
{
	char *why = NULL;
	int r = place_open(ret, place, &why);

	if (r)
		log_error("%s: %s", who, why ? why : strerror(-r));
	free(why);
	return r ? EX_NOINPUT : 0;
}

static int open_agent(struct store **ret, const char *who, const char *options, const char *socket)
{
	struct query_agent_store found;
	int r = query_agent_find(&found, who, socket);

	if (!r && is_bucket(found.place))
		r = open_bucket(ret, who, found.place, options ? options : found.options);
	else if (!r)
		r = open_folder(ret, who, found.place);
	query_agent_free(&found);
	return r;
}

int query_place_open(struct store **ret, const char *place, const char *options, const char *socket,
		     const struct cli_command *command)
{
	const char *who = command->name;
	bool agent = !strcmp(place, "agent");

	if (socket && !agent)
		return cli_bad_usage(command, "--socket is for the agent: fusee %s %s", who,
				     command == &query_command ? "agent" : "--agent");
	if (options && !agent && !is_bucket(place))
		return cli_bad_usage(command,
				     "--store is for buckets, s3://NAME/PREFIX: '%s' is a folder",
				     place);
	return agent              ? open_agent(ret, who, options, socket)
	       : is_bucket(place) ? open_bucket(ret, who, place, options)
				  : open_folder(ret, who, place);
}

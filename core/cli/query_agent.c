/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/internal/query_agent.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/buf.h"
#include "base/log.h"
#include "config/plan.h"
#include "ctl/answer.h"
#include "net/control_client.h"

#define TIMEOUT_NS 60000000000ull

/* The sink's options that are needed to read a bucket. */
static const char *const bucket_options[] = {"endpoint", "region", "credentials_file",
					     "ca_file",  "proxy",  "insecure"};

/* A folder, or s3://..; "": the sink has no store that can be read. */
static const char *place_of(struct json_object *sink)
{
	struct json_object *options = json_object_object_get(sink, "options");
	const char *dir = answer_text(options, "dir");

	return *dir ? dir : answer_text(options, "bucket");
}

/* "NAME=VALUE,..", as --store takes them. NULL: no memory. */
static char *make_options(struct json_object *sink)
{
	struct json_object *options = json_object_object_get(sink, "options"), *v;
	struct buf b = {0};

	for (size_t i = 0; i < sizeof(bucket_options) / sizeof(*bucket_options); i++) {
		v = json_object_object_get(options, bucket_options[i]);
		if (!json_object_is_type(v, json_type_boolean) &&
		    !*answer_text(options, bucket_options[i]))
			continue;
		buf_printf(&b, "%s%s=", b.len ? "," : "", bucket_options[i]);
		for (const char *p = json_object_get_string(v); *p; p++)
			buf_printf(&b, "%s%c", *p == ',' || *p == '\\' ? "\\" : "", *p);
	}
	buf_add(&b, "", 1);
	if (b.error)
		buf_fini(&b);
	return b.p;
}

static int take(struct query_agent_store *ret, const char *who, struct json_object *sink)
{
	const char *place = place_of(sink);
	bool bucket = !strncmp(place, "s3://", 5);

	if (!bucket && *place != '/') {
		log_error("%s: the agent's %s writes to '%s', below its own working directory: "
			  "give that folder",
			  who, answer_text(sink, "name"), place);
		return EX_NOINPUT;
	}
	ret->place = strdup(place);
	ret->options = bucket ? make_options(sink) : NULL;
	if (ret->place && (!bucket || ret->options))
		return 0;
	log_error("%s: %s", who, strerror(ENOMEM));
	return EX_OSERR;
}

/* Chooses the only store; with several, logs an error that lists them. */
static int choose(struct query_agent_store *ret, const char *who, struct json_object *sinks)
{
	struct json_object *found = NULL;
	struct buf all = {0};
	uint32_t nfound = 0;
	int r;

	for (size_t i = 0; i < answer_length(sinks); i++) {
		struct json_object *sink = json_object_array_get_idx(sinks, i);
		const char *place = place_of(sink);

		if (!*place)
			continue;
		buf_printf(&all, "%s%s (%s)", nfound++ ? ", " : "", place,
			   answer_text(sink, "name"));
		found = sink;
	}
	if (nfound == 1) {
		r = take(ret, who, found);
	} else {
		log_error(nfound ? "%s: the agent keeps profiles in several places, give one: %.*s"
				 : "%s: no sink of the agent keeps profiles that can be read: "
				   "sink.parquet and sink.pprof do%.*s",
			  who, (int)all.len, all.len ? all.p : "");
		r = nfound ? EX_USAGE : EX_NOINPUT;
	}
	buf_fini(&all);
	return r;
}

static int no_answer(const char *who, const char *socket, int err)
{
	if (err == -ENOENT || err == -ECONNREFUSED)
		log_error("%s: no agent runs here (%s): name a folder or s3://NAME/PREFIX", who,
			  socket);
	else if (err == -EACCES)
		log_error("%s: the agent at %s answers root and its own user: try sudo", who,
			  socket);
	else
		log_error("%s: the agent at %s: %s", who, socket, strerror(-err));
	return EX_UNAVAILABLE;
}

int query_agent_find(struct query_agent_store *ret, const char *who, const char *socket)
{
	char *own = socket ? NULL : plan_default_control(), *line = NULL;
	const char *path = socket ? socket : own;
	struct json_object *o;
	int r;

	*ret = (struct query_agent_store){0};
	if (!path) {
		log_error("%s: %s", who, strerror(ENOMEM));
		return EX_OSERR;
	}
	r = control_request(path, "status", TIMEOUT_NS, &line);
	if (r) {
		r = no_answer(who, path, r);
	} else {
		o = json_tokener_parse(line);
		r = choose(ret, who, answer_list(o, "sinks"));
		json_object_put(o);
	}
	free(line);
	free(own);
	return r;
}

void query_agent_free(struct query_agent_store *s)
{
	free(s->place);
	free(s->options);
	*s = (struct query_agent_store){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
/* fusee run: the agent. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/cli.h"
#include "console/options.h"
#include "hooks/hooks.h"
#include "record/session.h"
#include "agent/agent.h"
#include "config/flags.h"
#include "lua/script.h"

#define DEFAULT_SCRIPT "/etc/fusee/fusee.lua"
#define MAX_FLAGS 64u

struct run {
	const char *script;
	const char *sinks[MAX_FLAGS], *discoveries[MAX_FLAGS], *unwinders[MAX_FLAGS];
	struct plan_flags flags;
	bool cache;
	uint64_t duration_ns;
};

static int add_spec(const char **all, uint32_t *n, const char *spec)
{
	if (*n == MAX_FLAGS)
		return cli_bad_usage(&run_command, "more than %u of these: '%s'", MAX_FLAGS, spec);
	all[(*n)++] = spec;
	return 0;
}

static int add_sink(void *arg, const char *value)
{
	struct run *o = arg;

	return add_spec(o->sinks, &o->flags.nsinks, value);
}

static int add_discovery(void *arg, const char *value)
{
	struct run *o = arg;

	return add_spec(o->discoveries, &o->flags.ndiscoveries, value);
}

static int add_unwinder(void *arg, const char *value)
{
	struct run *o = arg;

	return add_spec(o->unwinders, &o->flags.nunwinders, value);
}

#define MEMBER(member) .offset = offsetof(struct run, member)

static const struct cli_option options[] = {
	{"config", 'c', "FILE", "the script; default " DEFAULT_SCRIPT, CLI_TEXT, MEMBER(script)},
	{"sink", 0, "SINK",
	 "where profiles go: pprof:dir=/var/lib/fusee,every=60s\n"
	 "http:url=http://host:4040/push; several are allowed",
	 CLI_CALL, .set = add_sink},
	{"discover", 0, "DISCOVERY", "what finds targets: process, cgroup; default all of them",
	 CLI_CALL, .set = add_discovery},
	{"unwind", 0, "UNWINDER", UNWIND_HELP, CLI_CALL, .set = add_unwinder},
	{"rate", 'F', "HZ", "samples a second of CPU time; default 19 (flags only)", CLI_RATE,
	 MEMBER(flags.hz)},
	{"listen", 0, "ADDRESS", "/metrics and /healthz: 127.0.0.1:9190 (flags only)", CLI_TEXT,
	 MEMBER(flags.listen)},
	{"pull", 0, NULL, "profiles for who may connect there: /debug/pprof/profile\n(flags only)",
	 CLI_TRUE, MEMBER(flags.pull)},
	{"socket", 0, "PATH", "the socket for fusee ctl (flags only)", CLI_TEXT,
	 MEMBER(flags.control), .old_name = "control"},
	{"duration", 'd', "TIME", "end after this time", CLI_DURATION, MEMBER(duration_ns)},
	{"no-cache", 0, NULL, "neither read nor write unwind tables on disk", CLI_FALSE,
	 MEMBER(cache)},
};

const struct cli_command run_command = {
	.name = "run",
	.does = "the agent: profile continuously, as a script says",
	.usage = "fusee run [-c FILE]\n"
		 "       fusee run --sink PLUGIN[:OPTION=VALUE,..] [--discover PLUGIN[:..]] "
		 "[OPTION]...\n"
		 "The agent: profiles what a script or these flags select, until it is stopped.\n",
	CLI_OPTIONS(options),
	.footer = "SIGHUP reloads the script, SIGUSR2 closes all windows now, SIGTERM ends it.\n",
};

static int parse(struct run *o, int argc, char **argv)
{
	bool flags;
	int first, r = cli_parse(&run_command, o, argc, argv, &first);

	if (r)
		return r;
	if (first < argc)
		return cli_bad_usage(&run_command, "'%s' is no option: the script is named with -c",
				     argv[first]);
	flags = o->flags.nsinks || o->flags.ndiscoveries || o->flags.nunwinders ||
		o->flags.hz > 0 || o->flags.listen || o->flags.pull || o->flags.control;
	if (o->script && flags)
		return cli_bad_usage(&run_command,
				     "%s: a script or flags, not both: the script can say what "
				     "flags say",
				     o->script);
	if (flags && !o->flags.nsinks && !o->flags.pull)
		return cli_bad_usage(&run_command,
				     "profiles have nowhere to go: name a --sink, or --pull");
	if (!o->script && !flags) {
		o->script = DEFAULT_SCRIPT;
		if (access(o->script, F_OK))
			return cli_bad_usage(&run_command,
					     "there is no %s: name a script with -c, or a --sink",
					     o->script);
	}
	return 0;
}

static int make_plan(void *arg, const struct plugin_folder *f, struct plan **ret,
		     struct plan_errors *errors)
{
	const struct run *o = arg;

	int r = o->script ? plan_from_script(ret, o->script, f, errors)
			  : plan_from_flags(ret, &o->flags, f, errors);

	return r ? r : hooks_check(ret, errors);
}

int cmd_run(int argc, char **argv)
{
	struct run o = {.cache = true};
	struct agent_options a = {.plan = make_plan, .arg = &o};
	char *plugins = plugin_default_dir(), *cache = NULL;
	int r;

	o.flags.sinks = o.sinks;
	o.flags.discoveries = o.discoveries;
	o.flags.unwinders = o.unwinders;
	r = parse(&o, argc, argv);
	if (!r) {
		cache = o.cache ? session_cache_dir() : NULL;
		a.plugin_dir = plugins;
		a.cache_dir = cache;
		a.duration_ns = o.duration_ns;
		r = plugins ? agent_run(&a) : EX_OSERR;
		if (!plugins)
			log_error("cannot start: %s", strerror(ENOMEM));
	}
	free(plugins);
	free(cache);
	return r < 0 ? 0 : r;
}

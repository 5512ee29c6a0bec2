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
#include "cli/options.h"
#include "cli/session.h"
#include "agent/agent.h"
#include "config/flags.h"
#include "config/script.h"

#define DEFAULT_SCRIPT "/etc/fusee/fusee.lua"
#define MAX_FLAGS 64u

static const char usage_text[] =
	"usage: fusee run [-c FILE]\n"
	"       fusee run --sink PLUGIN[:OPTION=VALUE,..] [--discover PLUGIN[:..]] [OPTION]...\n"
	"The agent: profiles what a script or these flags say, always, until it is told to end.\n"
	"\n"
	"  -c, --config FILE     the script; default " DEFAULT_SCRIPT "\n"
	"      --sink SPEC       where profiles go: pprof:dir=/var/lib/fusee,every=60s\n"
	"                        http:url=http://host:4040/push; several are allowed\n"
	"      --discover SPEC   who says what there is: process, cgroup; default all of them\n"
	"  -F, --rate HZ         samples a second of CPU time; default 19 (flags only)\n"
	"      --listen ADDRESS  /metrics and /healthz: 127.0.0.1:9190 (flags only)\n"
	"      --control PATH    the socket for fusee ctl (flags only)\n"
	"  -d, --duration TIME   end after this time\n"
	"      --no-cache        neither read nor write unwind tables on disk\n"
	"  -h, --help\n"
	"SIGHUP reloads the script, SIGUSR2 closes all windows now, SIGTERM ends it.\n";

struct run {
	const char *script;
	const char *sinks[MAX_FLAGS], *discoveries[MAX_FLAGS];
	struct plan_flags flags;
	bool cache;
	uint64_t duration_ns;
};

static int bad(const char *format, const char *what)
{
	return options_bad("run", format, what);
}

static int take_spec(const char **all, uint32_t *n, const char *spec)
{
	if (*n == MAX_FLAGS)
		return bad("too many of these: '%s' is one too many", spec);
	all[(*n)++] = spec;
	return 0;
}

enum { OPT_SINK = 256, OPT_DISCOVER, OPT_LISTEN, OPT_CONTROL, OPT_NO_CACHE };

static const struct option long_options[] = {
	{"config", required_argument, NULL, 'c'},
	{"sink", required_argument, NULL, OPT_SINK},
	{"discover", required_argument, NULL, OPT_DISCOVER},
	{"rate", required_argument, NULL, 'F'},
	{"listen", required_argument, NULL, OPT_LISTEN},
	{"control", required_argument, NULL, OPT_CONTROL},
	{"duration", required_argument, NULL, 'd'},
	{"no-cache", no_argument, NULL, OPT_NO_CACHE},
	{"help", no_argument, NULL, 'h'},
	{0},
};

/* -1: help was printed. */
static int take_option(struct run *o, int c)
{
	switch (c) {
	case 'c':
		o->script = optarg;
		return 0;
	case OPT_SINK:
		return take_spec(o->sinks, &o->flags.nsinks, optarg);
	case OPT_DISCOVER:
		return take_spec(o->discoveries, &o->flags.ndiscoveries, optarg);
	case 'F':
		return options_rate("run", optarg, &o->flags.hz);
	case OPT_LISTEN:
		o->flags.listen = optarg;
		return 0;
	case OPT_CONTROL:
		o->flags.control = optarg;
		return 0;
	case 'd':
		return options_duration("run", optarg, &o->duration_ns);
	case OPT_NO_CACHE:
		o->cache = false;
		return 0;
	case 'h':
		fputs(usage_text, stdout);
		return -1;
	default:
		return EX_USAGE; /* and it was said why */
	}
}

static int parse(struct run *o, int argc, char **argv)
{
	bool flags;
	int c, r = 0;

	while (!r && (c = options_next("run", argc, argv, "c:F:d:h", long_options)) != -1)
		r = take_option(o, c);
	if (r)
		return r;
	if (optind < argc)
		return bad("what is '%s'? the script goes behind -c", argv[optind]);
	flags = o->flags.nsinks || o->flags.ndiscoveries || o->flags.hz > 0 || o->flags.listen ||
		o->flags.control;
	if (o->script && flags)
		return bad("%s: a script or flags, not both: what flags say, the script can say",
			   o->script);
	if (flags && !o->flags.nsinks)
		return bad("%s", "profiles have nowhere to go: name a --sink");
	if (!o->script && !flags) {
		o->script = DEFAULT_SCRIPT;
		if (access(o->script, F_OK))
			return bad("there is no %s: name a script with -c, or a --sink", o->script);
	}
	return 0;
}

static int make_plan(void *arg, const struct plugin_folder *f, struct plan **ret,
		     struct plan_errors *errors)
{
	const struct run *o = arg;

	return o->script ? plan_from_script(ret, o->script, f, errors)
			 : plan_from_flags(ret, &o->flags, f, errors);
}

int cmd_run(int argc, char **argv)
{
	struct run o = {.cache = true};
	struct agent_options a = {.plan = make_plan, .arg = &o};
	char *plugins = plugin_default_dir(), *cache = NULL;
	int r;

	o.flags.sinks = o.sinks;
	o.flags.discoveries = o.discoveries;
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

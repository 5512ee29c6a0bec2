/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is to be done, as plain data: made by a Lua script or by flags, checked as a whole before
 * anything starts. A plan never changes once it is made.
 */
#ifndef CONFIG_PLAN_H
#define CONFIG_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "plugin/plugin.h"

struct policy;

#define PLAN_MAX_SINKS 64 /* a decision names them by bits */

struct plan_instance {
	uint32_t kind; /* enum fusee_kind */
	const struct fusee_plugin *descriptor;
	char *plugin;   /* "pprof" */
	char *name;     /* "sink.pprof"; the second one "sink.pprof#2" */
	char *where;    /* "fusee.lua:12", "--sink" */
	char *identity; /* equal in two plans: the same instance, which keeps running at a reload.
			   Kind, plugin and the plugin's own options, in one order of the options'
			   names. Unique in a plan. Never shown: secrets are in it */
	struct instance_option *options; /* the plugin's own */
	uint32_t noptions;
	/* what the core does for every sink: options every, queue, per, omit */
	uint64_t every_ns;    /* its window; default 60s */
	uint64_t queue_bytes; /* of profiles that wait; default 64MiB */
	bool per_target;      /* per = "target": a profile for each label set; default "window" */
	char **omit;          /* labels that are left out; NULL-ended, never NULL itself */
};

/* What the core does for every sink, as a table of options. For help and manuals. */
extern const struct fusee_table plan_sink_options;

struct plan {
	char *path;           /* of the script; NULL: flags */
	double hz;            /* of targets that the policy gives none; default 19 */
	uint64_t stack_bytes; /* default and most 65528 */
	bool kernel, threads, inlines;
	int64_t sampler;   /* enum sampler_choice */
	bool unknown_keep; /* processes that no discovery knows (yet): profiled; default true */
	char *listen;      /* of /metrics: "127.0.0.1:9190"; "" none, the default */
	char *control;     /* socket's path */
	struct plan_instance **sinks, **discoveries;
	uint32_t nsinks, ndiscoveries;
	char **without;        /* unwinders with enabled = false; NULL-ended, never NULL itself */
	struct policy *policy; /* NULL: none */
};

/* A group of the core's own settings: "sample.cpu" { hz = 99 }. */
struct plan_settings {
	const char *name, *doc;
	struct fusee_table options; /* struct fusee_option; types may be PLAN_NUMBER too */
};
#define PLAN_NUMBER 64u /* double; min and max in thousandths */
extern const struct plan_settings plan_settings[];
extern const uint32_t plan_nsettings;

/* Where an agent's control socket is if nothing else is said: /run/fusee/control for root, else
 * $XDG_RUNTIME_DIR/fusee/control, else /tmp/fusee-UID/control. NULL: no memory. */
char *plan_default_control(void);

/* All that is wrong, at most 20 and then how many more, a sentence each: "fusee.lua:3: sink.pprof:
 * unknown option 'evry' (did you mean 'every'?)". */
struct plan_errors {
	char **texts;
	uint32_t n;
};
void plan_errors_fini(struct plan_errors *);

/* Runs the script and checks the whole plan against the plugins of the folder: 0, or -EINVAL with
 * at least one error; the -errno of reading the file, likewise with its sentence; -ENOMEM,
 * likewise or without one.
 * Nothing but the script's own state is made. */
int plan_from_script(struct plan **ret, const char *path, const struct plugin_folder *,
		     struct plan_errors *);
/* From flags: sinks "pprof:dir=/var/lib/fusee,every=60s" ("http:url=http://x:4040"), discoveries
 * "cgroup". What follows a comma and is no option of the plugin's goes on with the list or map
 * before it ("omit=pid,tid"); "\," is a comma of the value. */
struct plan_flags {
	const char *const *sinks, *const *discoveries;
	uint32_t nsinks, ndiscoveries;
	double hz;           /* 0: default */
	const char *listen;  /* NULL: default */
	const char *control; /* NULL: default */
};
int plan_from_flags(struct plan **ret, const struct plan_flags *, const struct plugin_folder *,
		    struct plan_errors *);
void plan_free(struct plan *); /* and its policy; NULL is fine */
/* The whole plan with its defaults and positions, as JSON. Secrets are not shown. */
int plan_json(const struct plan *, struct buf *);
#endif

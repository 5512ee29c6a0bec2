/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan: the requests of a script or of flags, as plain data. script.h and flags.h make it; it is
 * complete and checked before anything starts, and never changes afterwards.
 */
#ifndef CONFIG_PLAN_H
#define CONFIG_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "plugin/plugin.h"
#include "target/target.h"
#include "relabel/rules.h"

struct script;

#define PLAN_MAX_SINKS 64 /* bits of struct policy_answer.sinks */
#define PLAN_MAX_DISCOVERIES 64
#define PLAN_MAX_UNWINDERS 32
#define PLAN_MAX_SAMPLERS PLUGIN_MAX_SAMPLERS /* beside CPU time */
#define PLAN_MAX_CALLBACKS 16
#define PLAN_MAX_ERRORS 20

struct plan_instance {
	uint32_t kind; /* enum fusee_kind */
	const struct fusee_plugin *descriptor;
	char *plugin; /* "pprof" */
	char *name;   /* "sink.pprof"; of the second sink.pprof "sink.pprof#2" */
	char *where;  /* "fusee.lua:12", "--sink" */
	/* Kind, plugin and the plugin's own options, sorted by name. Unique in a plan. Instances of
	 * two plans with equal identities are the same instance, which keeps running at a reload.
	 * Contains secrets: never shown. */
	char *identity;
	struct instance_option *options; /* the plugin's own */
	uint32_t noptions;
	uint64_t period; /* of samplers only: ns, or a number of the sampler's unit */
	/* Of sinks only: the options that every sink has. */
	uint64_t every_ns;    /* window; default 60s */
	uint64_t queue_bytes; /* of the queued profiles at most; default 64MiB */
	char *spool;          /* folder of spools; "": none, the default; never NULL */
	uint64_t spool_bytes, spool_age_ns, spool_sync_ns; /* defaults 1GiB, 1d, 1s */
	bool by_default;   /* receives targets whose sinks the policy does not name; default true */
	bool per_target;   /* per = "target": a profile for each label set; default "window" */
	bool server_names; /* names = "server": struct build_options; default "local" */
	char **omit;       /* names of labels to be removed; NULL-terminated, never NULL */
	struct relabel_rules *relabel;           /* NULL: none */
	const struct relabel_rules *relabel_all; /* those of the plan, which are applied first */
};

/* A function of the script that the agent calls: lua/callback.h. */
struct plan_callback {
	uint64_t period_ns; /* of every(); 0: of on("profile") */
	char *where;        /* "fusee.lua:9": where it was declared */
};

struct plan_callbacks {
	struct plan_callback list[PLAN_MAX_CALLBACKS]; /* in the order of the script */
	void (*free_script)(struct script *);          /* of plan.script; NULL: no script */
	uint32_t n;
};

struct plan_limits {
	uint64_t stack_bytes; /* of a stack copy; default and maximum 65528 */
	uint64_t ring_bytes;  /* of the rings of all CPUs; 0: the perf stream's default */
	/* CPU time that the agent itself may use, in millionths of a CPU; 0: no limit, the
	 * default. */
	int64_t budget_cpu;
};

/* Profiles that clients pull: metrics { pull = true }. */
struct plan_pulls {
	bool served;             /* at /debug/pprof/profile of `listen`; default false */
	int64_t max;             /* at once; default 8 */
	int64_t names;           /* enum sink_names, config/settings.h; default NAMES_LOCAL */
	struct fusee_table omit; /* struct fusee_str: names of labels to leave out */
	/* struct fusee_str: further hosts that requests may name, for /metrics too; "*": any. */
	struct fusee_table hosts;
};

#define PLAN_MAX_PROBES 32

/* Options of a sample.probe. */
struct plan_probe_options {
	char *name;    /* "": its text */
	int64_t count; /* hits */
	uint64_t time; /* ns, of timed calls */
};

/* A probe of sample.probe. */
struct plan_probe {
	char *text;      /* "uprobe:/usr/bin/program:function" */
	char *name;      /* unique in the plan: the label `probe` of its samples */
	char *where;     /* "fusee.lua:12" */
	uint64_t period; /* hits, or ns of timed calls: one in so many is a sample, 1: each */
};

/* What is sampled beside CPU time. */
struct plan_samplers {
	struct plan_instance **list;
	uint32_t n;
	/* sample.alloc: of the bytes that are allocated one in so many is a sample; 0: none. */
	uint64_t alloc_bytes;
	uint64_t inuse_bytes; /* sample.inuse: likewise, and what is in use of them */
	struct plan_probe *probes;
	uint32_t nprobes;
	struct plan_probe_options given; /* of the sample.probe that was read last */
};

struct plan {
	char *path; /* of the script; NULL: made by flags */
	double hz;  /* of targets whose rate the policy does not set; default 19 */
	struct plan_limits limits;
	bool kernel, threads, inlines;
	int64_t sampler; /* enum sampler_choice */
	struct plan_samplers samplers;
	bool unknown_keep; /* profile processes that no discovery knows (yet); default true */
	char *listen;      /* address of /metrics: "127.0.0.1:9190"; "" none, the default */
	struct plan_pulls pulls;
	char *control;                 /* path of the control socket */
	struct target_labels labels;   /* labels on request */
	struct fusee_table debuginfod; /* struct fusee_str: servers of debug files */
	struct plan_instance **sinks, **discoveries;
	struct plan_instance **unwinders; /* that have options; others have defaults */
	uint32_t nsinks, ndiscoveries, nunwinders;
	char **without; /* names of disabled unwinders; NULL-terminated, never NULL */
	struct plan_callbacks callbacks;
	struct relabel_rules *relabel; /* of all sinks; NULL: none */
	bool has_policy;               /* lua/policy.h calls it */
	struct script *script;         /* of the policy and the callbacks; NULL: there are none */
};

/* The plan's choice of unwinders; list has room for PLAN_MAX_UNWINDERS. Borrows from the plan. */
struct unwinder_choice plan_unwinders(const struct plan *, struct unwinder_options *list);
/* Frees the plan with its script. NULL is valid. */
void plan_free(struct plan *);
/* Of sample.alloc or sample.inuse: of how many bytes one is a sample; 0: of none. */
uint64_t plan_hit_bytes(const struct plan *);
/* Appends the plan as JSON, with defaults and places in the script, without secrets. 0, -ENOMEM. */
int plan_json(const struct plan *, struct buf *);
/* The member `options` of an instance, each with its value or default; secrets are hidden. */
void plan_options_json(const struct plan_instance *, struct json *);

/* The default path of the control socket: /run/fusee/control for root, else
 * $XDG_RUNTIME_DIR/fusee/control, else /tmp/fusee-UID/control. Owned by the caller; NULL: no
 * memory. */
char *plan_default_control(void);

/* The errors in a script or flags, a sentence each: "fusee.lua:3: sink.pprof: unknown option 'evry'
 * (did you mean 'every'?)". Beyond PLAN_MAX_ERRORS, the last sentence is their number. */
struct plan_errors {
	char **texts; /* owned */
	uint32_t n;
};
void plan_errors_fini(struct plan_errors *);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Callbacks: functions of the script that the agent calls, declared by every() and on(). A callback
 * of every() sees the targets as they were when its call began, and returns actions on them; a
 * callback of on("profile") sees a profile. [control thread]
 */
#ifndef LUA_CALLBACK_H
#define LUA_CALLBACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <fusee/profile.h>

struct lua_State;
struct plan;

/* The processes of one label set. */
struct callback_target {
	const struct fusee_label *labels; /* with those of the policy */
	uint32_t nlabels;
	const pid_t *pids; /* of its processes, lowest first */
	uint32_t npids;
	double hz;    /* samples per second of CPU time; 0: it is not profiled */
	bool refused; /* the policy does not profile it */
	double cpu;   /* CPUs that it used on average since the callback's previous call */
};

/* What a callback of every() sees. Borrowed for the call. */
struct callback_view {
	const struct callback_target *targets;
	uint32_t ntargets;
};

enum callback_action_kind { CALLBACK_RATE, CALLBACK_DROP, CALLBACK_LABEL, CALLBACK_PROFILE };

struct callback_action {
	enum callback_action_kind kind;
	uint32_t target;          /* index in the view */
	double hz;                /* of CALLBACK_RATE */
	uint64_t ns;              /* how long; not of CALLBACK_LABEL */
	uint32_t sink;            /* of CALLBACK_PROFILE: index in the plan */
	struct fusee_label label; /* of CALLBACK_LABEL */
	char *texts;              /* of the label; owned */
};

/* In the order of the call. {0} is empty. */
struct callback_actions {
	struct callback_action *list;
	size_t n, cap;
};
void callback_actions_fini(struct callback_actions *);

/* A profile that a sink is to receive. Borrowed for the call. */
struct callback_profile {
	const char *sink; /* its name: "sink.pprof" */
	const struct fusee_profile *profile;
};

/* Calls plan->callbacks.list[i], one of every(), with *actions empty. 0 with the actions that it
 * requests; -EINVAL with a malloc'ed sentence in *text: the callback raised an error, needed too
 * much memory, or ran longer than SCRIPT_CALL_NS ("fusee.lua:9: every: runs longer than 20 ms of
 * CPU time"); -ENOMEM with *text NULL or a sentence. After an error there are no actions. */
int lua_callback_run(const struct plan *, uint32_t i, const struct callback_view *,
		     struct callback_actions *, char **text);
/* The same for a callback of on("profile"). */
int lua_callback_profile(const struct plan *, uint32_t i, const struct callback_profile *,
			 char **text);
/* Adds every(), on(), targets() and count() to the globals. Inside script_enter(); may raise. */
void callbacks_open(struct lua_State *);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Calls the policy function of a plan's script. [control thread] Never called per sample. */
#ifndef LUA_POLICY_H
#define LUA_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include <fusee/plugin.h>

struct plan;

#define POLICY_MAX_LABELS 16

struct policy_answer {
	bool profile;
	double hz;      /* samples per second and CPU */
	uint64_t sinks; /* bit i: plan->sinks[i] */
	bool pulled;    /* profiled without a sink, because the plan has none */
	/* Text labels to be added to the target's own. The plan owns the texts. */
	struct fusee_label labels[POLICY_MAX_LABELS];
	uint32_t nlabels;
};

/*
 * Calls the policy for a target with these labels, without those that have no text. Returns 0 with
 * the policy's answer, or the plan's defaults if there is no policy or it returned nil; -EINVAL
 * with the defaults and a malloc'ed sentence in *text if the answer is wrong or took longer than
 * SCRIPT_CALL_NS ("fusee.lua:9: policy: 'hz' must be a number from 0.1 to 20000, got 'fast'");
 * -ENOMEM with the defaults and *text NULL or a sentence.
 */
int lua_policy_ask(const struct plan *, const struct fusee_label *labels, uint32_t n,
		   struct policy_answer *ret, char **text);
/* Whether the policy may refuse a target before all its labels are known: there is one, and no
 * callback sees refused targets. */
bool lua_policy_is_early(const struct plan *);

/* What the policy looks at. */
struct policy_watch {
	bool (*may_change)(void *arg, struct fusee_str name);
	void *arg;
	bool requested;
};

/*
 * The same for a target that may have more labels, and others, than these. Sets watch->requested if
 * the answer may be another with them, and is not to be used: there is no policy, or the policy
 * read a label that may_change(), or went through all of them; or callbacks of the plan may read
 * them. An answer that is wrong counts as an answer that may be another. 0 or -ENOMEM.
 */
int lua_policy_ask_early(const struct plan *, const struct fusee_label *labels, uint32_t n,
			 struct policy_answer *ret, struct policy_watch *);
/* script_collect() of the plan's script, if it has one. */
void lua_policy_collect(const struct plan *);
/* Bytes that the script's Lua state and its policy's label texts occupy. */
uint64_t lua_policy_memory(const struct plan *);
#endif

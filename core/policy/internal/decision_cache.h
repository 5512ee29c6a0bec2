/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decisions of a plan, one for each label set: the policy is called once for a label set, and
 * its answer is kept while a process has it. Equal label sets of processes that some discovery
 * instance matched and of processes that none did are decided separately. For the control thread.
 */
#ifndef POLICY_DECISION_CACHE_H
#define POLICY_DECISION_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hashmap.h"
#include "lua/policy.h"
#include "target/target.h"

#define DECISION_LABELS 64u /* most labels of a decision */

/* What the policy answered for one label set. */
struct decision {
	uint32_t set; /* of the targets */
	bool profile;
	double hz;      /* 0 unless profile */
	uint64_t sinks; /* bit i: the plan's sinks[i]; 0 unless profile */
	/* The label set's and the policy's labels, sorted by name. */
	const struct fusee_label *labels;
	uint32_t nlabels;
	uint32_t processes; /* running processes that have this decision */
	uint64_t cpu_ns;    /* CPU time of its samples so far */
	bool refused;       /* by the policy; profile may be false for another reason */
	bool known;         /* for processes that some discovery instance matched */
};

/* lua_policy_ask(): 0; -EINVAL with one malloc'ed sentence in *text: the answer was wrong and
 * *answer holds the defaults; -ENOMEM: no answer, the call is repeated later. */
typedef int decide_fn(void *arg, const struct fusee_label *, uint32_t n, struct policy_answer *,
		      char **text);

/* lua_policy_ask_early() */
typedef int decide_early_fn(void *arg, const struct fusee_label *, uint32_t n,
			    struct policy_answer *, struct policy_watch *);

struct decision_cache {
	struct hashmap entries; /* struct cached_decision * */
	struct targets *targets;
	decide_fn *decide;
	/* Asks the policy about a process that lacks labels (targets_lack_labels()), and has them
	 * found. NULL: no process lacks any. */
	decide_early_fn *decide_early;
	void (*find_labels)(void *arg, pid_t pid);
	void *arg; /* of all functions */
	/* Also decides processes that no discovery instance matched; otherwise they are not
	 * profiled. */
	bool unknown_keep;
	uint32_t changed; /* changes of decision_changes.h that are in effect */
};

/* The texts of a label that was added. */
struct added_label {
	struct added_label *next;
	char texts[]; /* key and value */
};

struct cached_decision {
	struct decision d;
	uint32_t holders; /* processes that have it, including those that ended recently */
	struct fusee_label *labels; /* those of d, with room for label_cap */
	uint32_t label_cap;         /* at most DECISION_LABELS */
	char *texts;                /* of the policy's labels */

	/* The policy's answer. `d` is this answer with the changes of decision_changes.h. */
	bool profile;
	double hz;
	uint64_t sinks;
	bool pulled;                           /* as in struct policy_answer */
	double rate_hz;                        /* replaces hz until rate_until_ns */
	uint64_t more_sinks;                   /* in addition to sinks, until more_until_ns */
	uint64_t rate_until_ns, drop_until_ns; /* CLOCK_MONOTONIC; 0: not in effect */
	uint64_t more_until_ns;
	struct added_label *added; /* texts of labels */
	bool changed;              /* d differs from what was reported for its processes */
	bool early;                /* its processes lack labels */
	bool refuses;              /* early: whatever these are, as far as names_known */
	uint32_t names_known;      /* targets_later_names() then */
};

/* The decision for a process by its label set; calls the policy if there is none yet. Labels that
 * the process lacks are found unless the policy refuses it without them. NULL: no memory. */
struct cached_decision *decision_cache_get(struct decision_cache *, const struct target_process *,
					   bool *known);
/* The decision, without calling the policy. NULL: there is none yet. */
struct cached_decision *decision_cache_peek(const struct decision_cache *, uint32_t set,
					    bool known);
/* The order of two labels by name: <0, 0 or >0. */
int decision_label_order(const struct fusee_label *, const struct fusee_label *);
/* The decision of a label set, or NULL; that of matched processes if there are two. */
const struct decision *decision_cache_find(const struct decision_cache *, uint32_t set);
void decision_cache_each(const struct decision_cache *,
			 void (*each)(void *arg, const struct decision *), void *arg);
/* Frees decisions that no process holds and whose label set `used` answers false for, at most 256
 * of them, and then the label sets of the targets that have no decision. */
void decision_cache_sweep(struct decision_cache *, bool (*used)(void *arg, uint32_t set),
			  void *arg);
void decision_cache_fini(struct decision_cache *); /* frees all decisions */
#endif

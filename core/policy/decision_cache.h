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
#include "config/lua_policy.h"
#include "process/target.h"

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
	bool known;         /* for processes that some discovery instance matched */
};

/* lua_policy_ask(): 0; -EINVAL with one malloc'ed sentence in *text: the answer was wrong and
 * *answer holds the defaults; -ENOMEM: no answer, the call is repeated later. */
typedef int decide_fn(void *arg, const struct fusee_label *, uint32_t n, struct policy_answer *,
		      char **text);

struct decision_cache {
	struct hashmap entries; /* struct cached_decision * */
	struct targets *targets;
	decide_fn *decide;
	void *arg;
	/* Processes that no discovery instance matched are decided too; else not profiled. */
	bool unknown_keep;
};

struct cached_decision {
	struct decision d;
	uint32_t holders; /* processes that have it, including those that ended recently */
	struct fusee_label labels[64];
	char *texts; /* of the policy's labels */
};

/* The decision for a label set; calls the policy if there is none yet. NULL: no memory. */
struct cached_decision *decision_cache_get(struct decision_cache *, uint32_t set, bool known);
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

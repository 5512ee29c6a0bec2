/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was decided about each live process. A child has its parent's decision from the fork on;
 * exec, news of targets, another plan and, slowly, a move to another control group bring a new one.
 * The plan is asked once for each distinct label set. For the control thread.
 */
#ifndef POLICY_DECISIONS_H
#define POLICY_DECISIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "config/policy.h"
#include "process/target.h"

struct decisions;

/* What was decided about one label set; lives until the next decisions_replan() or _sweep(). */
struct decision {
	uint32_t set;
	bool profile;
	double hz;
	uint64_t sinks;                   /* of the plan */
	const struct fusee_label *labels; /* the set's and the policy's own, sorted by name */
	uint32_t nlabels;
	uint32_t processes; /* how many live ones have it */
};

struct decisions_options {
	struct targets *targets;
	/* The plan's answer, as plan_decide(); *text: one sentence where it is wrong. -ENOMEM: it
	 * is asked again. */
	int (*decide)(void *arg, const struct fusee_label *, uint32_t n, struct policy_answer *,
		      char **text);
	bool unknown_keep; /* what no source knows of is decided like the rest, else dropped */
	/* A process has another decision now; NULL: it is gone; inherited: it has its parent's,
	 * with which it began. Not 0: nothing came of it, and it is told again by decisions_tidy().
	 */
	int (*changed)(void *arg, pid_t pid, const struct decision *, bool inherited);
	/* Another number whenever somebody moved to another control group; 0: that is not known.
	 * NULL is fine. */
	uint64_t (*moves)(void *arg);
	void *arg;
};

int decisions_new(struct decisions **ret, const struct decisions_options *);
void decisions_free(struct decisions *); /* NULL is fine */

void decisions_forked(struct decisions *, pid_t parent, pid_t child);
/* Also: it runs already. comm, time_ns: as the kernel told of it, for one that has ended since; or
 * NULL. */
void decisions_execed(struct decisions *, pid_t pid, const char *comm, uint64_t time_ns);
void decisions_exited(struct decisions *, pid_t pid, uint64_t now_ns);
/* After news of targets: does nothing where there are none. */
void decisions_refresh(struct decisions *);
bool decisions_are_stale(const struct decisions *); /* there are some */
/* Everything is decided anew. */
void decisions_replan(struct decisions *, bool unknown_keep);
/* Once a second: a fifteenth of the processes are looked at for another control group, those that
 * ended a while ago are forgotten, and what memory was short for is done. */
void decisions_tidy(struct decisions *, uint64_t now_ns);
/* Processes may have been missed: the next decisions_tidy() looks for them. */
void decisions_look_over(struct decisions *);
/* NULL: no such process. */
const struct decision *decisions_of(const struct decisions *, pid_t pid);
const struct decision *decisions_of_set(const struct decisions *, uint32_t set);
uint32_t decisions_processes(const struct decisions *, uint32_t *profiled);
void decisions_each_set(const struct decisions *, void (*each)(void *arg, const struct decision *),
			void *arg);
/* Frees the label sets that no process has and that `used` does not want. */
void decisions_sweep(struct decisions *, bool (*used)(void *arg, uint32_t set), void *arg);
#endif

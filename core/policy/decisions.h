/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decision of each process. A child has its parent's decision from the fork on; exec, a change
 * of targets, another plan and a move to another control group (found within 15 s, or 60 s) may
 * change it. For the control thread.
 */
#ifndef POLICY_DECISIONS_H
#define POLICY_DECISIONS_H

#include <sys/types.h>

#include "policy/internal/decision_changes.h"
#include "policy/internal/tracked.h"

struct decisions;

struct decisions_options {
	struct targets *targets; /* borrowed */
	decide_fn *decide;
	/* As in struct decision_cache. */
	decide_early_fn *decide_early;
	void (*find_labels)(void *arg, pid_t pid);
	bool unknown_keep; /* as in struct decision_cache */
	/* Called when a process has another decision, or none (NULL): it ended, or memory is
	 * missing. inherited: it has its parent's decision since the fork. If it does not return 0,
	 * decisions_tidy() repeats the call. */
	int (*changed)(void *arg, pid_t pid, const struct decision *, bool inherited);
	/* A counter that changes whenever a process moves to another control group; 0: not
	 * counted. NULL is fine. */
	uint64_t (*moves)(void *arg);
	/* Reads what is known of the file that the process runs; false: nothing yet. NULL is fine,
	 * if decisions_find_programs() is not called. */
	bool (*program)(void *arg, pid_t pid, struct program *);
	/* A process ended more than 2 s ago, and there is none in its pid: also if no event has
	 * reported its end, or while the process could still be read. NULL is fine. */
	void (*forgotten)(void *arg, pid_t pid);
	void *arg; /* of all functions */
};

int decisions_new(struct decisions **ret, const struct decisions_options *); /* 0 or -ENOMEM */
void decisions_free(struct decisions *);                                     /* NULL is fine */

void decisions_forked(struct decisions *, pid_t parent, pid_t child);
/* A process executed a program, or was found running. comm, time_ns (CLOCK_MONOTONIC): its name and
 * the time of its exec, as the kernel reported them, for a process that may have ended since; or
 * NULL, 0. */
void decisions_execed(struct decisions *, pid_t pid, const char *comm, uint64_t time_ns);
/* Events were lost: a pid may be of another process by now. */
void decisions_lost(struct decisions *);
void decisions_exited(struct decisions *, pid_t pid, uint64_t now_ns);
/* Decides anew those processes whose targets changed. Cheap if none did. */
void decisions_refresh(struct decisions *);
/* Decides profiled processes anew if more is known of their programs. until_ns (CLOCK_MONOTONIC):
 * program() knows all programs that began before. */
void decisions_find_programs(struct decisions *, uint64_t until_ns);
bool decisions_are_stale(const struct decisions *); /* decisions_refresh() has something to do */
/* Decides all processes anew, with another plan. */
void decisions_replan(struct decisions *, bool unknown_keep);
/* Once a second: checks a fifteenth of the processes for another control group or a missed end,
 * forgets processes that ended more than 2 s ago, and repeats what failed without memory. */
void decisions_tidy(struct decisions *, uint64_t now_ns);
/* Reports decisions that decision_changes.h changed, or whose change has ended; so does
 * decisions_tidy(). */
void decisions_apply(struct decisions *, uint64_t now_ns);
/* The cache of decisions, for decision_changes.h to change. */
struct decision_cache *decisions_cache(struct decisions *);
/* Process events were lost: the next decisions_tidy() looks for unknown processes in /proc. */
void decisions_rescan(struct decisions *);
/* What is known of a running process; its texts are valid until the next call. */
struct decision_process {
	struct target_process target;
	bool kernel;                            /* a kernel thread: it has no decision */
	const struct cached_decision *decision; /* NULL: none */
};
int decisions_process(const struct decisions *, pid_t pid, struct decision_process *); /* -ESRCH */
/* A process's decision, valid until the next decisions_replan() or decisions_sweep(). NULL: the
 * process is not known, is a kernel thread, or has no decision. */
const struct decision *decisions_of(const struct decisions *, pid_t pid);
/* Adds to the cpu_ns of the process's decision, if it has one. */
void decisions_add_cpu(struct decisions *, pid_t pid, uint64_t ns);
/* The decision of a label set, valid as long as that of a process. NULL: there is none. */
const struct decision *decisions_of_set(const struct decisions *, uint32_t set);
/* The number of running processes without kernel threads; *profiled: how many of them are
 * profiled. */
uint32_t decisions_processes(const struct decisions *, uint32_t *profiled);
void decisions_each_set(const struct decisions *, void (*each)(void *arg, const struct decision *),
			void *arg);
/* Calls each() for the running processes that have a decision, in no order. */
void decisions_each_process(const struct decisions *,
			    void (*each)(void *arg, pid_t pid, const struct decision *), void *arg);
/* decision_cache_sweep() */
void decisions_sweep(struct decisions *, bool (*used)(void *arg, uint32_t set), void *arg);
#endif

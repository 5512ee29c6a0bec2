/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child process for what libbpf and libelf do with objects, some of which come from plugins of
 * others. If it crashes, runs out of memory or takes too long, that costs an error and the time of
 * a fork. For one thread.
 */
#ifndef SANDBOX_LOADER_H
#define SANDBOX_LOADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct loader_result;

struct loader {
	pid_t pid;                    /* 0: there is no child, and the rest means nothing */
	uint64_t until;               /* time limit, CLOCK_MONOTONIC ns */
	const char *what;             /* the work, for sentences; borrowed */
	struct loader_result *result; /* memory that is shared with the child */
	/* loader_poll_stuck(): */
	uint64_t used_ns;  /* CPU time of the child */
	uint64_t moved_ns; /* when that was last seen to grow, CLOCK_MONOTONIC; 0: never */
	bool stuck;        /* it was killed */
};

/* Starts a child that calls work(), which returns 0 or -errno and may write a sentence into `why`.
 * The child has a copy of this process's memory, and of its descriptors stdin, stdout, stderr and
 * keep[n]. 0 or -errno. */
int loader_start(struct loader *, const char *what, int (*work)(void *arg, char *why, size_t len),
		 void *arg, const int *keep, uint32_t n);
/* -EINPROGRESS: the child is at work. Otherwise it has ended: what work() returned; -ETIMEDOUT; or
 * -EFAULT if it crashed. *why: a malloc'ed sentence, or NULL. Does not wait. */
int loader_poll(struct loader *, char **why);
/* The same, but waits until the child has ended or its time is over. */
int loader_wait(struct loader *, char **why);
/* loader_poll() for a child that reads a file: kills it after two seconds without CPU time, in
 * which the file has not answered; -ETIMEDOUT then, as soon as it has ended. */
int loader_poll_stuck(struct loader *, char **why);
/* Kills the child, if there is one, and waits a moment. */
void loader_end(struct loader *);
#endif

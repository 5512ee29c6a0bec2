/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child process for what libbpf and libelf do with objects, of which some are strangers': it may
 * crash, want more memory than there is, or take long, and costs an error, and the time of a fork.
 * It has no descriptors of ours but those that it is given. For one thread.
 */
#ifndef BPF_LOADER_H
#define BPF_LOADER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct loader_answer;

struct loader {
	pid_t pid;                  /* 0: there is none; the rest means nothing then */
	uint64_t until;             /* CLOCK_MONOTONIC ns: ended then */
	const char *what;           /* "linking them"; borrowed, for sentences */
	struct loader_answer *word; /* what it said; shared with it */
};

/* Starts it. It keeps stdin, stdout, stderr and keep[n], and all memory of ours, as a copy; there
 * work() returns 0, or -errno with, maybe, a sentence in why, which is empty. 0 or -errno. */
int loader_start(struct loader *, const char *what, int (*work)(void *arg, char *why, size_t len),
		 void *arg, const int *keep, uint32_t n);
/* -EINPROGRESS: it is at work. Else there is none any more: what the work returned, or how it ended
 * where it did not return; *why is one malloc'ed sentence, or NULL. Does not wait. */
int loader_ask(struct loader *, char **why);
/* Likewise, waits for it. It has a time limit. */
int loader_wait(struct loader *, char **why);
/* Ends it, if there is one. */
void loader_end(struct loader *);
#endif

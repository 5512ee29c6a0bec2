/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child process for what libbpf and libelf do with objects, of which some are strangers': it may
 * crash, want more memory than there is, or take long, and costs an error, and the time of a fork.
 * It has no descriptors of ours but those that it is given. For one thread.
 */
#ifndef SAMPLING_BPF_CHILD_H
#define SAMPLING_BPF_CHILD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct bpf_child_word;

struct bpf_child {
	pid_t pid;                   /* 0: there is none; the rest means nothing then */
	uint64_t until;              /* CLOCK_MONOTONIC ns: ended then */
	const char *what;            /* "linking them"; borrowed, for sentences */
	struct bpf_child_word *word; /* what it said; shared with it */
};

/* Starts it. It keeps stdin, stdout, stderr and keep[n], and all memory of ours, as a copy; there
 * work() returns 0, or -errno with, maybe, a sentence in why, which is empty. 0 or -errno. */
int bpf_child_start(struct bpf_child *, const char *what,
		    int (*work)(void *arg, char *why, size_t len), void *arg, const int *keep,
		    uint32_t n);
/* -EINPROGRESS: it is at work. Else there is none any more: what the work returned, or how it ended
 * where it did not return; *why is one malloc'ed sentence, or NULL. Does not wait. */
int bpf_child_ask(struct bpf_child *, char **why);
/* Likewise, waits for it. It has a time limit. */
int bpf_child_wait(struct bpf_child *, char **why);
/* Ends it, if there is one. */
void bpf_child_end(struct bpf_child *);
#endif

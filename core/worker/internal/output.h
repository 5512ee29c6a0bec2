/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What worker processes print. Their stderr is a pipe, because a malicious file may control a
 * worker: its text reaches the log in lines, without control characters, and in bounded number. One
 * thread.
 */
#ifndef WORKER_OUTPUT_H
#define WORKER_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define OUTPUT_LINE 240u      /* bytes; longer lines are truncated */
#define OUTPUT_MAX_LINES 200u /* of all workers in a minute; more with FUSEE_DEBUG */

/* One for all workers of an agent, so that a restarted worker may not print more. */
struct output_limit {
	uint64_t began_ns; /* of the current minute, CLOCK_MONOTONIC */
	uint32_t lines;    /* in it */
};

struct output {
	int fd; /* read end; -1: none */
	struct output_limit *limit;
	uint32_t len;
	char line[OUTPUT_LINE + 1];
};

/* Counts a line about files of others. false: there were too many in this minute. */
bool output_is_allowed(struct output_limit *);
/* Makes the pipe. *writer, which the worker gets, is the caller's to close. 0 or -errno. */
int output_open(struct output *, struct output_limit *, int *writer);
/* Logs what is there, 64 KiB at most. Never blocks. 0; -EPIPE: all writers are closed. */
int output_read(struct output *, pid_t);
/* The same, then closes the pipe. */
void output_close(struct output *, pid_t);
#endif

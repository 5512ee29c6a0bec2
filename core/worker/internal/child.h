/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's side of one worker process: start, messages, end. Nothing here blocks but
 * child_stop(). */
#ifndef WORKER_CHILD_H
#define WORKER_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "worker/internal/output.h"
#include "worker/internal/protocol.h"

struct child {
	pid_t pid; /* 0: no process; the other fields are undefined then */
	int sock;
	struct output output; /* what it prints */
	bool ready;           /* REPLY_READY came: its sandbox is closed */
	uint32_t denied;      /* 1 + the system call of REPLY_DENIED; 0: none came */
	int err;              /* of a REPLY_READY that reports a failure; 0: none came */
	char text[400];       /* of the same message */
	bool ending, killed;  /* child_end() was called; SIGKILL was sent */
	bool by_others;       /* it has ended by a SIGKILL that was not sent here */
	uint64_t end_ns; /* CLOCK_MONOTONIC: when it is killed or, if it was, counts as stuck */
};

/* Starts `fusee worker 3 MEMORY ARGUMENTS` from /proc/self/exe, with at most CHILD_MAX_ARGUMENTS,
 * which end with NULL. It inherits its end of the socket pair, a pipe as stderr, and no other
 * descriptor. The limit must outlive the process. 0 or
 * -errno. */
#define CHILD_MAX_ARGUMENTS 128u
int child_start(struct child *, char *const *arguments, uint64_t memory_limit,
		struct output_limit *);
/* Reads the next REPLY_DONE or REPLY_UNWINDER; other messages change the fields above. *fd: owned
 * by the caller; -1: none. 1; 0: no message is waiting; -EPIPE, -EBADMSG (also after a second
 * REPLY_READY or REPLY_DENIED, so that no process can keep the caller reading): the process is to
 * be ended. */
int child_receive(struct child *, struct protocol_reply *, int *fd);
/* Kills the process. With `kill` false only after 100 ms: it is about to end by itself, and SIGKILL
 * would hide why. */
void child_end(struct child *, bool kill);
/*
 * true: the process has ended, and everything is closed. why: receives a phrase, "it was killed by
 * signal 9 (Killed)"; NULL: not needed. *stuck: SIGKILL was sent 500 ms ago: the process is in a
 * system call that does not end, as a read of an unreachable file server.
 */
bool child_has_ended(struct child *, char *why, size_t len, bool *stuck);
/* Kills the process if it runs, and waits for its end for 500 ms at most. */
void child_stop(struct child *);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's side of one worker process: start, talk, end, and say how it ended. */
#ifndef WORKER_CHILD_H
#define WORKER_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "worker/protocol.h"

struct child {
	pid_t pid; /* 0: none runs; the rest means nothing then */
	int pidfd, sock;
	bool ready;      /* it said so: its sandbox is closed */
	uint32_t denied; /* 1 + the system call that it said it would die of */
	int err;         /* why it never became ready, 0 */
	char text[400];  /* likewise, "" */
};

/* `fusee worker 3 MEMORY PLUGIN_DIR`, by /proc/self/exe, with nothing open but its socket and
 * stderr. 0 or -errno. */
int child_start(struct child *, const char *plugin_dir, uint64_t memory_limit);
/* Ends it if it still runs. why: a phrase, "was killed by signal 9 (Killed)"; NULL where nobody
 * asks. */
void child_stop(struct child *, char *why, size_t len);
/* 1: an answer (not READY, not DENIED: those are kept here); 0: none yet; -EPIPE, -EBADMSG: it is
 * of no more use. */
int child_receive(struct child *, struct protocol_reply *, int *fd);
#endif

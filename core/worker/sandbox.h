/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walls around the worker: no capabilities, no new privileges, no tracing of it, no core dumps,
 * bounded memory, and a list of system calls. Allowed: what reading given descriptors, computing
 * and answering takes. A call that looks for a file by path gets EACCES (libraries try, and live
 * without); any other call ends the worker, after it has said which.
 */
#ifndef WORKER_SANDBOX_H
#define WORKER_SANDBOX_H

#include <stdint.h>
#include <stdio.h>

/* Closed for ever; call when all libraries are loaded. sock: to say REPLY_DENIED on. 0, or -errno
 * with *what: a phrase. */
int sandbox_enter(int sock, uint64_t memory_limit, const char **what);
/* Calls that got EACCES so far, and the last one's number. */
uint32_t sandbox_refused(uint32_t *last);
/* Name of a system call, for messages: "socket", or "" where it is not among those that we can
 * name. */
const char *sandbox_call_name(uint32_t call);
/* The list, for people (`fusee worker --sandbox`). */
void sandbox_print(FILE *);
#endif

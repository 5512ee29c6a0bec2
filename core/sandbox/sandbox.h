/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sandbox of the worker process: no capabilities, no new privileges, not dumpable (so processes
 * of the same user cannot trace it), no core dumps, limited memory and descriptors, and a list of
 * system calls. The allowed calls read the given descriptors, compute and reply. A call that takes
 * a path returns EACCES, as libraries try such and work without; any other call ends the worker,
 * after it was reported. The worker keeps the agent's uid and namespaces, and its stderr.
 */
#ifndef SANDBOX_SANDBOX_H
#define SANDBOX_SANDBOX_H

#include <stdint.h>
#include <stdio.h>

/* Enters the sandbox, for good. To be called when all libraries are loaded. denied: called with
 * sock before the worker ends for a call; async-signal-safe. memory_limit: bytes. 0, or -errno with
 * *what: a phrase that completes "the worker cannot". */
int sandbox_enter(int sock, void (*denied)(int sock, uint32_t call), uint64_t memory_limit,
		  const char **what);
/* The number of calls that got EACCES so far, and the last of them. */
uint32_t sandbox_refused(uint32_t *last);
/* The name of a system call, such as "socket"; "": not known. For messages. */
const char *sandbox_call_name(uint32_t call);
/* Prints the list, for `fusee worker --sandbox`. */
void sandbox_print(FILE *);
#endif

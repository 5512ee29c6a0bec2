/* SPDX-License-Identifier: Apache-2.0 */
/* Starts fusee itself once more, for a process that has less rights. */
#ifndef SANDBOX_SPAWN_H
#define SANDBOX_SPAWN_H

#include <stdint.h>
#include <sys/types.h>

#define SPAWN_FD 3 /* the socket in the process */

/* Starts fusee itself from /proc/self/exe, in a session of its own, without the agent's
 * environment. It gets the socket as SPAWN_FD, err_fd as stderr, and no other. 0 or -errno. */
int spawn_self(pid_t *, int sock, int err_fd, char *const argv[]);
/* CPU time in ns of a child process that has not ended; 0: it has, or pid is 0. */
uint64_t spawn_cpu_ns(pid_t);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Starts fusee itself once more, for a process that has less rights. */
#ifndef SANDBOX_SPAWN_H
#define SANDBOX_SPAWN_H

#include <stdint.h>
#include <sys/types.h>

#define SPAWN_FD 3 /* the socket in the process */

/* Starts fusee itself from /proc/self/exe, in a session of its own, without the agent's
 * environment. It gets the other end of *sock, a new SOCK_SEQPACKET, as SPAWN_FD, err_fd as stderr,
 * and no other. 0 or -errno: no process and no descriptor remain then. */
int spawn_self(pid_t *, int *sock, int err_fd, char *const argv[]);
/* The same, with a descriptor that is readable when the process has ended. */
int spawn_watched(pid_t *, int *sock, int *pidfd, char *const argv[]);
/* CPU time in ns of a child process that has not ended; 0: it has, or pid is 0. */
uint64_t spawn_cpu_ns(pid_t);
#endif

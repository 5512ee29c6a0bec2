/* SPDX-License-Identifier: Apache-2.0 */
/* The client of the control socket, for `fusee ctl`. Blocks. */
#ifndef NET_CONTROL_CLIENT_H
#define NET_CONTROL_CLIENT_H

#include <stdint.h>

/* Connects, sends a command, receives the answer: *line, malloc'ed, without the newline. 0 or
 * -errno: -ENOENT or -ECONNREFUSED: no agent listens; -EACCES: the agent runs as another user than
 * root and the caller; -ETIMEDOUT; -ECONNRESET: the agent closed the connection without an answer;
 * -EINVAL: the command is empty or has more than one line; -EFBIG: the answer exceeds 64 MiB. */
int control_request(const char *path, const char *command, uint64_t timeout_ns, char **line);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Listening sockets of the control socket and the HTTP server. Their descriptors are non-blocking
 * and close-on-exec. */
#ifndef NET_LISTENER_H
#define NET_LISTENER_H

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

/* The address of a path. 0; -EINVAL: the path is empty; -ENAMETOOLONG: longer than 107 bytes. */
int listener_address(const char *path, struct sockaddr_un *);
/* Listens at a path, with this mode. A socket that no process listens at is replaced. 0 or -errno:
 * -EADDRINUSE: a process listens there; -EEXIST: the path is no socket. */
int listener_unix(const char *path, mode_t mode, int *ret);
/* address: "127.0.0.1:9190", "[::1]:9190", "localhost:0", ":9190" (all addresses). 0 or -errno;
 * -EINVAL: the address has none of these forms. */
int listener_tcp(const char *address, int *ret);
#endif

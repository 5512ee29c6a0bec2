/* SPDX-License-Identifier: Apache-2.0 */
/* Listening sockets of the control socket and the HTTP server. */
#ifndef NET_LISTENER_H
#define NET_LISTENER_H

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

/* -EINVAL: empty; -ENAMETOOLONG: longer than 107 bytes. */
int listener_address(const char *path, struct sockaddr_un *);
/* Listens at a path, which gets this mode. A socket file that nobody answers at is replaced;
 * -EADDRINUSE: somebody does; -EEXIST: it is no socket. Not blocking; 0 or -errno. */
int listener_unix(const char *path, mode_t mode, int *ret);
/* "127.0.0.1:9190", "[::1]:9190", "localhost:0", ":9190" (all addresses). -EINVAL: no such form. */
int listener_tcp(const char *address, int *ret);
#endif

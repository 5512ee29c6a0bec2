/* SPDX-License-Identifier: Apache-2.0 */
/* Messages with descriptors, between the agent and a process that it started, over a socket pair of
 * type SOCK_SEQPACKET. */
#ifndef SANDBOX_MESSAGE_H
#define SANDBOX_MESSAGE_H

#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#define MESSAGE_MAX_FDS 4u

/* 0 or -errno. flags: 0 or MSG_DONTWAIT. */
int message_send(int sock, struct iovec *, size_t n, const int *fds, unsigned int nfds, int flags);
/* The length of the message, 0 at the other end's end, or -errno. *flags: 0 or MSG_DONTWAIT; then
 * MSG_TRUNC and MSG_CTRUNC, if not all fit. Of the descriptors *nfds are kept at most, which then
 * is how many were, and are the caller's; the others are closed. */
ssize_t message_receive(int sock, struct iovec *, size_t n, int *fds, unsigned int *nfds,
			int *flags);
#endif

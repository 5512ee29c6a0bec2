// SPDX-License-Identifier: Apache-2.0
#include "sandbox/message.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(int) * MESSAGE_MAX_FDS)];
};

static void attach(struct msghdr *m, union control *c, const int *fds, unsigned int n)
{
	if (!n)
		return;
	memset(c, 0, sizeof(*c));
	m->msg_control = c;
	m->msg_controllen = CMSG_SPACE(sizeof(int) * n);
	c->head.cmsg_level = SOL_SOCKET;
	c->head.cmsg_type = SCM_RIGHTS;
	c->head.cmsg_len = CMSG_LEN(sizeof(int) * n);
	memcpy(CMSG_DATA(&c->head), fds, sizeof(int) * n);
}

int message_send(int sock, struct iovec *v, size_t n, const int *fds, unsigned int nfds, int flags)
{
	struct msghdr m = {.msg_iov = v, .msg_iovlen = n};
	union control c;
	ssize_t sent;

	attach(&m, &c, fds, nfds);
	do
		sent = sendmsg(sock, &m, flags | MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

static unsigned int detach(struct msghdr *m, int *fds, unsigned int max)
{
	unsigned int have = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		unsigned int n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (unsigned int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		for (unsigned int i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (have < max)
				fds[have++] = fd;
			else
				close(fd);
		}
	}
	return have;
}

ssize_t message_receive(int sock, struct iovec *v, size_t n, int *fds, unsigned int *nfds,
			int *flags)
{
	union control c;
	struct msghdr m = {
		.msg_iov = v, .msg_iovlen = n, .msg_control = &c, .msg_controllen = sizeof(c)};
	ssize_t len;

	do
		len = recvmsg(sock, &m, *flags | MSG_CMSG_CLOEXEC);
	while (len < 0 && errno == EINTR);
	if (len < 0)
		return -errno;
	*nfds = detach(&m, fds, *nfds);
	*flags = m.msg_flags & (MSG_TRUNC | MSG_CTRUNC);
	return len;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "net/control_client.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "net/internal/listener.h"

enum { MAX_BYTES = 64 << 20 };

static int wait_for(int fd, short events, uint64_t deadline)
{
	uint64_t now = clock_now();
	struct pollfd p = {.fd = fd, .events = events};
	uint64_t ms = now < deadline ? (deadline - now) / 1000000 + 1 : 0;
	int n;

	if (!ms)
		return -ETIMEDOUT;
	n = poll(&p, 1, ms < 3600000 ? (int)ms : 3600000);
	return n < 0 && errno != EINTR ? -errno : 0;
}

static int send_line(int fd, const struct buf *b, uint64_t deadline)
{
	for (size_t sent = 0; sent < b->len;) {
		ssize_t n = send(fd, b->p + sent, b->len - sent, MSG_NOSIGNAL);
		int err = 0;

		if (n >= 0)
			sent += (size_t)n;
		else if (errno == EPIPE)
			return 0; /* the answer may have the reason */
		else if (errno == EAGAIN)
			err = wait_for(fd, POLLOUT, deadline);
		else if (errno != EINTR)
			err = -errno;
		if (err)
			return err;
	}
	return 0;
}

static int receive_line(int fd, struct buf *b, uint64_t deadline)
{
	for (;;) {
		char *to = buf_grow(b, 65536);
		ssize_t n;
		int err = 0;

		if (!to)
			return -ENOMEM;
		n = recv(fd, to, 65536, 0);
		b->len -= 65536 - (n > 0 ? (size_t)n : 0);
		if (n > 0 && to[n - 1] == '\n')
			return 0;
		if (!n)
			return -ECONNRESET;
		if (b->len > MAX_BYTES)
			return -EFBIG;
		if (n < 0 && errno == EAGAIN)
			err = wait_for(fd, POLLIN, deadline);
		else if (n < 0 && errno != EINTR)
			err = -errno;
		if (err)
			return err;
	}
}

/* EAGAIN: the queue of the socket is full. */
static int connect_to(int fd, const struct sockaddr_un *at, uint64_t deadline)
{
	while (connect(fd, (const struct sockaddr *)at, sizeof(*at))) {
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		if (clock_now() >= deadline)
			return -ETIMEDOUT;
		usleep(10000);
	}
	return 0;
}

/* The server must run as root or as the caller, because another user may have created the socket in
 * a directory that all can write to. Root may connect to any server. */
static int check_peer(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size))
		return -errno;
	return peer.uid && peer.uid != geteuid() && geteuid() ? -EACCES : 0;
}

int control_request(const char *path, const char *command, uint64_t timeout_ns, char **line)
{
	uint64_t deadline = clock_now() + timeout_ns;
	struct buf request = {0}, answer = {0};
	struct sockaddr_un at;
	int fd = -1, err = listener_address(path, &at);

	if (!err && (!*command || strchr(command, '\n')))
		err = -EINVAL;
	if (err)
		return err;
	buf_printf(&request, "%s\n", command);
	err = request.error;
	if (err)
		goto out;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	err = fd < 0 ? -errno : connect_to(fd, &at, deadline);
	if (!err)
		err = check_peer(fd);
	if (!err)
		err = send_line(fd, &request, deadline);
	if (!err)
		err = receive_line(fd, &answer, deadline);
	if (!err) {
		answer.p[answer.len - 1] = '\0'; /* replaces the newline */
		*line = answer.p;
		answer = (struct buf){0};
	}
out:
	if (fd >= 0)
		close(fd);
	buf_fini(&request);
	buf_fini(&answer);
	return err;
}

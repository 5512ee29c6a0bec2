/* SPDX-License-Identifier: Apache-2.0 */
/* One client of a server in this thread's loop: sends bytes, and hears all that it is answered. */
#ifndef FUZZ_CLIENT_H
#define FUZZ_CLIENT_H

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/buf.h"
#include "net/internal/listener.h"
#include "fuzz.h"
#include "net/loop.h"

static char place[120];

/* Beside the program: the socket of an earlier run is replaced. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	snprintf(place, sizeof(place), "unix:%s.socket", (*argv)[0]);
	return 0;
}

struct fuzz_client {
	struct loop *loop;
	struct loop_watch *watch;
	const uint8_t *data;
	size_t rest;
	struct buf heard;
};

static void fuzz_ready(void *arg, int fd, uint32_t events)
{
	struct fuzz_client *c = arg;
	char bytes[4096];
	ssize_t n;

	if (events & EPOLLOUT) {
		n = send(fd, c->data, c->rest, MSG_NOSIGNAL);
		c->data += n > 0 ? n : 0;
		c->rest -= n > 0 ? (size_t)n : 0;
		if (!c->rest || n < 0) {
			shutdown(fd, SHUT_WR);
			loop_watch_events(c->watch, EPOLLIN);
		}
	}
	if (!(events & ~(uint32_t)EPOLLOUT))
		return;
	n = read(fd, bytes, sizeof(bytes));
	if (n > 0) {
		buf_add(&c->heard, bytes, (size_t)n);
		return;
	}
	loop_unwatch(c->watch);
	loop_stop(c->loop);
}

/* heard is the caller's. */
static void fuzz_talk(struct loop *loop, const char *path, const uint8_t *data, size_t size,
		      struct buf *heard)
{
	struct fuzz_client c = {.loop = loop, .data = data, .rest = size};
	struct sockaddr_un at;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || listener_address(path, &at) ||
	    connect(fd, (struct sockaddr *)&at, sizeof(at)) ||
	    loop_watch(loop, fd, EPOLLIN | EPOLLOUT, fuzz_ready, &c, &c.watch) || loop_run(loop))
		abort();
	close(fd);
	*heard = c.heard;
}
#endif

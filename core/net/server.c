/* SPDX-License-Identifier: Apache-2.0 */
#include "net/internal/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

#define PAUSE_NS 1000000000ull

struct server {
	struct loop *loop;
	struct loop_watch *watch;
	struct loop_timer *pause; /* until its end no client is accepted */
	struct client *clients;
	uint32_t n, max;
	size_t max_in;
	int fd;
	const struct server_callbacks *calls;
	void *arg;
};

/* The kernel reports a client that has disconnected even without EPOLLIN. */
static void update_events(struct client *c)
{
	bool room = c->reading && !c->eof && c->in.len < c->server->max_in;

	loop_watch_events(c->watch, (room ? EPOLLIN : 0u) | (c->sent < c->out.len ? EPOLLOUT : 0u));
}

static void update_accept(struct server *s)
{
	bool room = s->n < s->max || s->calls->idle;

	loop_watch_events(s->watch, room && !s->pause ? EPOLLIN : 0);
}

void client_drop(struct client *c)
{
	struct server *s = c->server;

	if (s->calls->dropped)
		s->calls->dropped(s->arg, c);
	if (c->prev)
		c->prev->next = c->next;
	else
		s->clients = c->next;
	if (c->next)
		c->next->prev = c->prev;
	loop_unwatch(c->watch);
	loop_timer_free(c->timer);
	close(c->fd);
	buf_fini(&c->in);
	buf_fini(&c->out);
	free(c);
	s->n--;
	update_accept(s);
}

void client_send(struct client *c)
{
	update_events(c);
}

void client_set_reading(struct client *c, bool reading)
{
	c->reading = reading;
	update_events(c);
}

static void on_late(void *arg)
{
	struct client *c = arg;

	c->timer = NULL;
	c->server->calls->late(c->server->arg, c);
}

void client_set_deadline(struct client *c, uint64_t at_ns)
{
	loop_timer_free(c->timer);
	c->timer = NULL;
	if (at_ns != UINT64_MAX && loop_at(c->server->loop, at_ns, on_late, c, &c->timer))
		c->timer = NULL; /* no memory: the client has no deadline */
}

/* Sends as much as the socket accepts. false: the client was dropped, or may have been. */
static bool send_some(struct client *c)
{
	while (c->sent < c->out.len) {
		ssize_t n = send(c->fd, c->out.p + c->sent, c->out.len - c->sent, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return true;
		if (n < 0) {
			client_drop(c);
			return false;
		}
		c->sent += (size_t)n;
	}
	buf_fini(&c->out);
	c->sent = 0;
	update_events(c);
	c->server->calls->written(c->server->arg, c);
	return false;
}

static void read_some(struct client *c)
{
	struct server *s = c->server;
	char bytes[4096];
	size_t room = s->max_in - c->in.len;
	ssize_t n = read(c->fd, bytes, room < sizeof(bytes) ? room : sizeof(bytes));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n < 0 || buf_add(&c->in, bytes, (size_t)n)) {
		client_drop(c);
		return;
	}
	c->eof = !n;
	update_events(c);
	s->calls->readable(s->arg, c);
}

static void on_client(void *arg, int fd, uint32_t events)
{
	struct client *c = arg;
	bool room = c->reading && !c->eof && c->in.len < c->server->max_in;

	(void)fd;
	/* closed in both directions: input that was received before is still read */
	if (events & (EPOLLERR | EPOLLHUP) && !room) {
		client_drop(c);
		return;
	}
	if (events & EPOLLOUT && c->sent < c->out.len && !send_some(c))
		return;
	if (events & (EPOLLIN | EPOLLERR | EPOLLHUP) && room)
		read_some(c);
}

static void on_pause_over(void *arg)
{
	struct server *s = arg;

	s->pause = NULL;
	update_accept(s);
}

/* The list begins with the newest client. */
static void make_room(struct server *s)
{
	struct client *oldest = NULL, *idle = NULL;

	if (s->n < s->max)
		return;
	for (struct client *c = s->clients; c; c = c->next) {
		oldest = c;
		if (s->calls->idle(c))
			idle = c;
	}
	client_drop(idle ? idle : oldest);
}

static void add_client(struct server *s, int fd)
{
	struct client *c;

	make_room(s);
	c = calloc(1, sizeof(*c));
	if (c)
		*c = (struct client){.server = s, .fd = fd, .reading = true, .next = s->clients};
	if (!c || loop_watch(s->loop, fd, EPOLLIN, on_client, c, &c->watch)) {
		free(c);
		close(fd);
		return;
	}
	if (c->next)
		c->next->prev = c;
	s->clients = c;
	s->n++;
	update_accept(s);
	if (!s->calls->accepted(s->arg, c))
		client_drop(c);
	else
		read_some(c); /* a request that has arrived is answered before the next accept */
}

static void on_accept(void *arg, int fd, uint32_t events)
{
	struct server *s = arg;
	int c = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	if (c >= 0) {
		add_client(s, c);
	} else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
		/* the socket stays readable: pause */
		if (loop_at(s->loop, clock_now() + PAUSE_NS, on_pause_over, s, &s->pause))
			s->pause = NULL;
		update_accept(s);
	}
}

int server_new(struct server **ret, struct loop *loop, int fd, uint32_t max_clients, size_t max_in,
	       const struct server_callbacks *calls, void *arg)
{
	struct server *s = calloc(1, sizeof(*s));
	int err = -ENOMEM;

	if (s) {
		*s = (struct server){.loop = loop,
				     .max = max_clients,
				     .max_in = max_in,
				     .fd = fd,
				     .calls = calls,
				     .arg = arg};
		err = loop_watch(loop, fd, EPOLLIN, on_accept, s, &s->watch);
	}
	if (err) {
		close(fd);
		free(s);
		return err;
	}
	*ret = s;
	return 0;
}

void server_free(struct server *s)
{
	if (!s)
		return;
	while (s->clients)
		client_drop(s->clients);
	loop_unwatch(s->watch);
	loop_timer_free(s->pause);
	close(s->fd);
	free(s);
}

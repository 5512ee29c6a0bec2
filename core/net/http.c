/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/internal/http_host.h"
#include "net/internal/listener.h"
#include "net/internal/server.h"

#define SECOND 1000000000ull

#define SLOWEST 262144u /* bytes a second at which an answer must be received */

enum { CLIENTS = 32, REQUEST_BYTES = 8192 };
enum state { REQUEST, WAIT, ANSWER, LINGER };

struct http_request {
	struct client *client;
	const struct http_page *page;
	void (*released)(void *user);
	void *user;
};

struct http {
	struct server *server;
	struct http_options o; /* without listen */
	char *socket;          /* path of the Unix socket, or NULL */
	char address[160];
};

static const char *reason(int status)
{
	switch (status) {
	case 200:
		return "OK";
	case 303:
		return "See Other";
	case 400:
		return "Bad Request";
	case 403:
		return "Forbidden";
	case 404:
		return "Not Found";
	case 405:
		return "Method Not Allowed";
	case 408:
		return "Request Timeout";
	case 421:
		return "Misdirected Request";
	case 431:
		return "Request Header Fields Too Large";
	case 503:
		return "Service Unavailable";
	case 505:
		return "HTTP Version Not Supported";
	default:
		return "Internal Server Error";
	}
}

static void respond_with(struct client *c, const struct http_answer *a, bool head)
{
	buf_printf(&c->out,
		   "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
		   "Connection: close\r\nCache-Control: no-store\r\n%s\r\n",
		   a->status, reason(a->status), a->type, a->len, a->headers ? a->headers : "");
	if (!head)
		buf_add(&c->out, a->body, a->len);
	if (c->out.error) {
		client_drop(c);
		return;
	}
	c->state = ANSWER;
	client_set_reading(c, false);
	client_set_deadline(c, clock_now() + 10 * SECOND + c->out.len / SLOWEST * SECOND);
	client_send(c);
}

/* body NULL: the reason phrase. */
static void respond(struct client *c, int status, const char *type, const struct buf *body,
		    bool head)
{
	const char *phrase = reason(status);
	char text[64];
	int n = snprintf(text, sizeof(text), "%s\n", phrase);
	const struct http_answer a = {.status = status,
				      .type = body ? type : "text/plain",
				      .headers = status == 405 ? "Allow: GET, HEAD\r\n" : NULL,
				      .body = body ? body->p : text,
				      .len = body ? body->len : (size_t)n};

	respond_with(c, &a, head);
}

/* ---- requests that are answered later ---- */

static void release(struct client *c)
{
	struct http_request *q = c->user;

	c->user = NULL;
	if (q && q->released)
		q->released(q->user);
	free(q);
}

static void begin(struct http *h, struct client *c, const struct http_page *p, char *query)
{
	struct http_request *q = calloc(1, sizeof(*q));

	if (!q) {
		respond(c, 500, NULL, NULL, false);
		return;
	}
	q->client = c;
	q->page = p;
	c->user = q;
	c->state = WAIT;
	client_set_deadline(c, UINT64_MAX);
	buf_reset(&c->in); /* the bytes of the query remain valid until the next read */
	client_set_reading(c, true);
	p->begin(h->o.arg, q, query);
}

void http_answer(struct http_request *q, const struct http_answer *a)
{
	respond_with(q->client, a, false);
}

const struct http_page *http_request_page(const struct http_request *q)
{
	return q->page;
}

void http_request_on_release(struct http_request *q, void (*released)(void *user), void *user)
{
	q->released = released;
	q->user = user;
}

/* ---- requests ---- */

static void answer(struct http *h, struct client *c, const char *method, const char *path,
		   char *query)
{
	bool head = !strcmp(method, "HEAD");
	const struct http_page *p = h->o.pages;
	struct buf body = {0};
	int status;

	while (p->path && strcmp(p->path, path))
		p++;
	if (!p->path || (!head && strcmp(method, "GET"))) {
		respond(c, p->path ? 405 : 404, NULL, NULL, head);
		return;
	}
	if (p->begin) {
		if (head)
			respond_with(c,
				     &(struct http_answer){.status = 405,
							   .type = "text/plain",
							   .headers = "Allow: GET\r\n"},
				     true);
		else
			begin(h, c, p, query);
		return;
	}
	status = p->get(h->o.arg, &body);
	if (body.error)
		respond(c, 500, NULL, NULL, head);
	else
		respond(c, status, p->type, &body, head);
	buf_fini(&body);
}

static bool is_token(const char *s)
{
	size_t n = strspn(s, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
			     "ABCDEFGHIJKLMNOPQRSTUVWXYZ");

	return n && !s[n];
}

/* Parses "GET /metrics?x HTTP/1.1" in place. 0, or the status of an error. */
static int parse(char *line, const char **method, const char **path, char **query)
{
	char *target = strchr(line, ' '), *version = target ? strchr(target + 1, ' ') : NULL;

	if (!version || strchr(version + 1, ' '))
		return 400;
	*target++ = '\0';
	*version++ = '\0';
	for (const char *p = target; *p; p++)
		if (*p <= ' ' || *p > '~')
			return 400;
	if (!is_token(line) || *target != '/' || strncmp(version, "HTTP/", 5) ||
	    !isdigit((unsigned char)version[5]) || version[6] != '.' ||
	    !isdigit((unsigned char)version[7]) || version[8])
		return 400;
	if (version[5] != '1')
		return 505;
	*method = line;
	*path = strsep(&target, "?");
	*query = target;
	return 0;
}

/* The length of the request's head, with the empty line at its end; 0: it is not complete. */
static size_t head_end(const struct buf *in)
{
	for (size_t i = 0; i < in->len; i++) {
		if (in->p[i] != '\n')
			continue;
		if (i + 1 < in->len && in->p[i + 1] == '\n')
			return i + 2;
		if (i + 2 < in->len && in->p[i + 1] == '\r' && in->p[i + 2] == '\n')
			return i + 3;
	}
	return 0;
}

static enum http_host check_host(const struct http *h, const struct client *c, size_t len)
{
	static const struct fusee_table none;
	struct sockaddr_storage at = {0};
	socklen_t size = sizeof(at);

	if (h->socket)
		return HTTP_HOST_GOOD; /* no browser connects to a Unix socket */
	getsockname(c->fd, (struct sockaddr *)&at, &size);
	return http_host_check(c->in.p, len, (const struct sockaddr *)&at,
			       h->o.hosts ? h->o.hosts(h->o.arg) : &none);
}

static void respond_foreign(const struct http *h, struct client *c)
{
	struct buf body = {0};

	buf_str(&body, h->o.foreign ? h->o.foreign
				    : "This server has another name than the request's Host. Name "
				      "the host in the script: metrics { hosts = { \"NAME\" } }\n");
	respond(c, 421, "text/plain", &body, false);
	buf_fini(&body);
}

static void on_request(struct http *h, struct client *c, size_t len)
{
	enum http_host host = check_host(h, c, len);
	bool is_own = !h->o.permit || http_origin_is_own(c->in.p, len);
	const char *method = NULL, *path = NULL;
	char none[] = "", *query = NULL;
	char *eol = memchr(c->in.p, '\n', c->in.len);
	int status;

	if (memchr(c->in.p, '\0', (size_t)(eol - c->in.p))) {
		respond(c, 400, NULL, NULL, false);
		return;
	}
	if (eol > c->in.p && eol[-1] == '\r')
		eol--;
	*eol = '\0';
	status = parse(c->in.p, &method, &path, &query);
	if (!status && host == HTTP_HOST_WRONG)
		status = 400;
	if (status)
		respond(c, status, NULL, NULL, false);
	else if (host == HTTP_HOST_FOREIGN)
		respond_foreign(h, c);
	else if (!is_own || (h->o.permit && !h->o.permit(h->o.arg, path)))
		respond(c, 403, NULL, NULL, false);
	else
		answer(h, c, method, path, query ? query : none);
}

static bool on_accepted(void *arg, struct client *c)
{
	(void)arg;
	client_set_deadline(c, clock_now() + 5 * SECOND);
	return true;
}

static uint32_t max_request(const struct http *h)
{
	return h->o.max_request ? h->o.max_request : REQUEST_BYTES;
}

static void on_readable(void *arg, struct client *c)
{
	size_t head = c->state == REQUEST ? head_end(&c->in) : 0;

	if (c->state == WAIT || c->state == LINGER) {
		if (c->eof) {
			client_drop(c); /* the client reads no answer */
			return;
		}
		buf_reset(&c->in);
		client_set_reading(c, true);
	} else if (head) {
		on_request(arg, c, head);
	} else if (c->eof) {
		client_drop(c);
	} else if (c->in.len >= max_request(arg)) {
		respond(c, 431, NULL, NULL, false);
	}
}

/* Reads the client's remaining input for a second: close() with unread input would reset the
 * connection, and the client could lose the answer. */
static void on_written(void *arg, struct client *c)
{
	(void)arg;
	release(c);
	if (c->eof || shutdown(c->fd, SHUT_WR)) {
		client_drop(c);
		return;
	}
	c->state = LINGER;
	buf_reset(&c->in);
	client_set_reading(c, true);
	client_set_deadline(c, clock_now() + SECOND);
}

static void on_late(void *arg, struct client *c)
{
	(void)arg;
	if (c->state == REQUEST && c->in.len)
		respond(c, 408, NULL, NULL, false);
	else
		client_drop(c);
}

static bool is_idle(const struct client *c)
{
	return c->state == REQUEST || c->state == LINGER;
}

static void on_dropped(void *arg, struct client *c)
{
	(void)arg;
	release(c);
}

static const struct server_callbacks callbacks = {
	.idle = is_idle,
	.accepted = on_accepted,
	.readable = on_readable,
	.written = on_written,
	.late = on_late,
	.dropped = on_dropped,
};

/* Sets the address, with the port that the kernel chose. */
static void name_address(struct http *h, int fd, const char *listen)
{
	struct sockaddr_storage at = {0};
	socklen_t size = sizeof(at);
	char host[INET6_ADDRSTRLEN] = "";

	snprintf(h->address, sizeof(h->address), "%s", listen);
	if (getsockname(fd, (struct sockaddr *)&at, &size))
		return;
	if (at.ss_family == AF_INET) {
		const struct sockaddr_in *in = (const void *)&at;

		inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
		snprintf(h->address, sizeof(h->address), "%s:%u", host, ntohs(in->sin_port));
	} else if (at.ss_family == AF_INET6) {
		const struct sockaddr_in6 *in = (const void *)&at;

		inet_ntop(AF_INET6, &in->sin6_addr, host, sizeof(host));
		snprintf(h->address, sizeof(h->address), "[%s]:%u", host, ntohs(in->sin6_port));
	}
}

static int fail(int err, const char *listen, char **text)
{
	int n;

	if (err == -EINVAL)
		n = asprintf(text,
			     "'%s' is no address to listen at: that is ADDRESS:PORT, "
			     "[IPV6-ADDRESS]:PORT, or unix:PATH",
			     listen);
	else
		n = asprintf(text, "cannot listen at '%s': %s", listen, strerror(-err));
	if (n < 0)
		*text = NULL;
	return err;
}

int http_new(struct http **ret, struct loop *loop, const struct http_options *o, char **text)
{
	const char *listen = o->listen;
	bool local = !strncmp(listen, "unix:", 5);
	struct http *h = calloc(1, sizeof(*h));
	int fd = -1, err = -ENOMEM;

	*text = NULL;
	if (!h)
		return err;
	h->o = *o;
	if (local && !(h->socket = strdup(listen + 5)))
		goto out;
	err = local ? listener_unix(listen + 5, 0666, &fd) : listener_tcp(listen, &fd);
	if (err) {
		free(h->socket);
		h->socket = NULL; /* another process listens at it: must not be unlinked */
		goto out;
	}
	name_address(h, fd, listen);
	err = server_new(&h->server, loop, fd, CLIENTS, max_request(h), &callbacks, h);
out:
	if (err) {
		http_free(h);
		return fail(err, listen, text);
	}
	*ret = h;
	return 0;
}

const char *http_address(const struct http *h)
{
	return h->address;
}

void http_free(struct http *h)
{
	if (!h)
		return;
	server_free(h->server);
	if (h->socket)
		unlink(h->socket);
	free(h->socket);
	free(h);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A very small HTTP/1.1 server for /metrics, /healthz and /readyz: GET and HEAD, one answer a
 * connection, bounded in connections, bytes and time. */
#ifndef DAEMON_HTTP_H
#define DAEMON_HTTP_H

#include "base/buf.h"
#include "daemon/loop.h"

struct http;

struct http_page {
	const char *path; /* "/metrics" */
	const char *type; /* "text/plain; version=0.0.4" */
	/* Fills the body; returns the status: 200, 503. */
	int (*get)(void *arg, struct buf *body);
	void *arg;
};

/* listen: "127.0.0.1:9190", "[::1]:9190", "unix:/path". Pages end with {0} and live as long as it.
 * 0 or -errno; *text: one sentence. */
int http_new(struct http **ret, struct loop *, const char *listen, const struct http_page *,
	     char **text);
void http_free(struct http *); /* NULL is fine */
#endif

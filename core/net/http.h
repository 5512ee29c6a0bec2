/* SPDX-License-Identifier: Apache-2.0 */
/* A very small HTTP/1.1 server for /metrics, /healthz and /readyz: GET and HEAD, one answer a
 * connection; 16 connections, 8 KiB and 5 s for a request, 10 s to take the answer. */
#ifndef NET_HTTP_H
#define NET_HTTP_H

#include "base/buf.h"
#include "net/loop.h"

struct http;

struct http_page {
	const char *path; /* "/metrics" */
	const char *type; /* "text/plain; version=0.0.4" */
	/* Fills the body; returns the status: 200, 503. */
	int (*get)(void *arg, struct buf *body);
	void *arg;
};

/* listen: "127.0.0.1:9190", "[::1]:9190", "localhost:9190", ":9190" (all addresses), "unix:/path"
 * (which everybody may read, as a port of this host). Pages end with {0} and live as long as it.
 * 0 or -errno; *text: one malloc'ed sentence. */
int http_new(struct http **ret, struct loop *, const char *listen, const struct http_page *,
	     char **text);
/* Where it listens: with the port that it got for 0. */
const char *http_address(const struct http *);
void http_free(struct http *); /* NULL is fine */
#endif

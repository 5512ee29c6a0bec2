/* SPDX-License-Identifier: Apache-2.0 */
/* A minimal HTTP/1.1 server for /metrics, /healthz and /readyz: GET and HEAD, one request for each
 * connection. Limits: 16 connections, 8 KiB and 5 s for a request, 10 s to receive the answer. A
 * further connection takes the place of the oldest whose request is not complete, or else of the
 * oldest: clients that wait keep no other from being answered. */
#ifndef NET_HTTP_H
#define NET_HTTP_H

#include <fusee/plugin.h>

#include "base/buf.h"
#include "net/loop.h"

struct http;

struct http_page {
	const char *path; /* "/metrics" */
	const char *type; /* "text/plain; version=0.0.4" */
	/* Appends to the body; returns the status: 200 or 503. */
	int (*get)(void *arg, struct buf *body);
};

struct http_options {
	const char *listen;
	const struct http_page *pages;
	/* Further hosts that are accepted, as in http_host_check(). */
	const struct fusee_table *(*hosts)(void *arg);
	void *arg; /* of pages and hosts */
};

/* listen: "127.0.0.1:9190", "[::1]:9190", "localhost:9190", ":9190" (all addresses), or
 * "unix:/path" (mode 0666, like a port). pages: ends with {0}; borrowed until http_free(). 0 or
 * -errno with one malloc'ed sentence in *text. */
int http_new(struct http **ret, struct loop *, const struct http_options *, char **text);
/* The address, with the port that the kernel chose for port 0. */
const char *http_address(const struct http *);
void http_free(struct http *); /* NULL is fine */
#endif

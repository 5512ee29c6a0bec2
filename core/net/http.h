/* SPDX-License-Identifier: Apache-2.0 */
/* A minimal HTTP/1.1 server for /metrics, /healthz, profiles that are pulled and the page of `fusee
 * ui`: GET and HEAD, one request for each connection. Limits: 32 connections, 8 KiB (max_request)
 * and 5 s for a request, 10 s and 1 s for each 256 KiB to receive the answer. A further connection
 * takes the place of the oldest whose request is not complete, or else of the oldest: so waiting
 * clients do not keep others from being answered. */
#ifndef NET_HTTP_H
#define NET_HTTP_H

#include <stdbool.h>

#include <fusee/plugin.h>

#include "base/buf.h"
#include "net/loop.h"

struct http;
/* A request that is answered later; valid until `released` is called. */
struct http_request;

struct http_answer {
	int status;
	const char *type;    /* "text/plain" */
	const char *headers; /* further lines, each with \r\n; NULL: none */
	const char *body;    /* copied */
	size_t len;
};

struct http_page {
	const char *path; /* "/metrics" */
	const char *type; /* "text/plain; version=0.0.4" */
	/* Appends to the body; returns the status: 200 or 503. */
	int (*get)(void *arg, struct buf *body);
	/* In place of get, for GET: calls http_answer(), now or later. query: what follows '?' of
	 * the path, the caller's to change during the call; "" if there is nothing. */
	void (*begin)(void *arg, struct http_request *, char *query);
};

struct http_options {
	const char *listen;
	const struct http_page *pages;
	/* Further hosts that are accepted, as in http_host_check(). */
	const struct fusee_table *(*hosts)(void *arg);
	/* Answers 403 to requests for which it returns false, whether or not there is such a page,
	 * and to those that a page of another origin sent. NULL: all are permitted. */
	bool (*permit)(void *arg, const char *path);
	const char *foreign;  /* the sentence of 421; NULL: how a script names a host */
	uint32_t max_request; /* bytes; 0: 8 KiB */
	void *arg;            /* of pages, hosts and permit */
};

/* listen: "127.0.0.1:9190", "[::1]:9190", "localhost:9190", ":9190" (all addresses), or
 * "unix:/path" (mode 0666, like a port). pages: ends with {0}; borrowed until http_free(). 0 or
 * -errno with one malloc'ed sentence in *text. */
int http_new(struct http **ret, struct loop *, const struct http_options *, char **text);
/* The address, with the port that the kernel chose for port 0. */
const char *http_address(const struct http *);
void http_free(struct http *); /* with its requests; NULL is fine */
/* Answers. `released` may be called before this returns. */
void http_answer(struct http_request *, const struct http_answer *);
/* The element of `pages` that was requested. */
const struct http_page *http_request_page(const struct http_request *);
/* released(user) is called once: when the answer was sent, or the client has disconnected or shut
 * down its side of the connection, or was too slow. The request must not be used after that. */
void http_request_on_release(struct http_request *, void (*released)(void *user), void *user);
#endif

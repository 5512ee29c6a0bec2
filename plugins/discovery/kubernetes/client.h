/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One HTTP request at a time to the API server, by libcurl's multi interface. Nothing here blocks:
 * the host watches libcurl's descriptors, and the caller keeps the deadlines. On the control
 * thread.
 */
#ifndef KUBERNETES_CLIENT_H
#define KUBERNETES_CLIENT_H

#include "server.h"

#define CLIENT_CONNECT (10 * FUSEE_SECOND) /* longest time to connect, TLS included */

enum client_end {
	CLIENT_ANSWERED,  /* the answer is complete */
	CLIENT_STOPPED,   /* body() did not accept it */
	CLIENT_SILENT,    /* no byte arrived for the silence_ns of client_new() */
	CLIENT_NO_TOKEN,  /* the token's file cannot be read, or is empty */
	CLIENT_UNTRUSTED, /* the server's certificate is not valid for it */
	CLIENT_BROKEN,    /* the connection could not be made, or ended */
};

/* How a request ended. */
struct client_result {
	enum client_end end;
	long status;          /* of HTTP; 0: none */
	uint64_t retry_after; /* ns; 0: the answer has no Retry-After */
	char why[256];        /* of CLIENT_NO_TOKEN, _UNTRUSTED and _BROKEN; without numbers that
			       * change */
};

struct client;

/* silence_ns: see CLIENT_SILENT. body() is called for the bytes of answers and their status; not
 * 0: the request ends. server is borrowed until client_free(). NULL: no memory. */
struct client *client_new(const struct fusee_self *, const struct server *, uint64_t silence_ns,
			  int (*body)(void *arg, long status, const char *bytes, size_t n),
			  void *arg);
void client_free(struct client *); /* NULL is valid */

/* Begins a request; none may be active. fresh: on a new connection. 0; 1: it has ended already, see
 * *result; -ENOMEM. */
int client_get(struct client *, const char *url, bool fresh, uint64_t now_ns,
	       struct client_result *result);
/* The host reports events (of epoll) for fd, or a deadline has passed (fd -1). true: the request
 * has ended, see *result. */
bool client_run(struct client *, int fd, uint32_t events, uint64_t now_ns,
		struct client_result *result);
/* Whether the header of the active request's answer has arrived. */
bool client_is_answered(const struct client *);
/* When client_run() is to be called at the latest (CLOCK_MONOTONIC ns); UINT64_MAX: never. */
uint64_t client_deadline(const struct client *);
#endif

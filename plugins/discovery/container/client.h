/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP requests over unix sockets, HTTP/1.1 or gRPC's HTTP/2, by libcurl's multi interface. Nothing
 * here blocks: the host watches libcurl's descriptors, and the caller keeps the deadlines. On the
 * control thread.
 */
#ifndef CONTAINER_CLIENT_H
#define CONTAINER_CLIENT_H

#include <stdbool.h>

#include <fusee/helpers.h>

enum request_end {
	REQUEST_ANSWERED, /* the answer is complete */
	REQUEST_STOPPED,  /* body() did not accept it, or its header is too large */
	REQUEST_SILENT,   /* no byte arrived for silence_ns */
	REQUEST_ENDLESS,  /* it did not end within most_ns */
	REQUEST_BROKEN,   /* the connection could not be made, or ended */
};

/* How a request ended. */
struct request_result {
	enum request_end end;
	long status;       /* of HTTP; 0: none */
	int grpc_status;   /* -1: none */
	int error;         /* of REQUEST_BROKEN: errno of connect(2), 0: not known */
	char message[256]; /* of gRPC, or why it is REQUEST_BROKEN; without control characters */
};

struct client;  /* of an instance */
struct request; /* one request at a time */

struct request_calls {
	/* The bytes of an answer; not 0: the request ends. */
	int (*body)(void *arg, long status, const char *bytes, size_t n);
	void (*ended)(void *arg, const struct request_result *); /* of client_run() */
	void *arg;
};

struct request_options {
	const char *socket;
	const char *target;           /* "/v1.40/containers/json" */
	bool grpc;                    /* a POST with the message; else a GET */
	const char *space;            /* of gRPC: containerd's namespace; "": none */
	struct fusee_str message;     /* of gRPC; may be empty */
	uint64_t silence_ns, most_ns; /* see request_end; 0: no limit */
};

struct client *client_new(const struct fusee_self *); /* NULL: no memory */
void client_free(struct client *);                    /* after its requests; NULL is valid */

struct request *request_new(struct client *, const struct request_calls *); /* NULL: no memory */
void request_free(struct request *);                                        /* NULL is valid */
/* No request may be active. The options are borrowed until this returns. 0 or -ENOMEM. */
int request_begin(struct request *, const struct request_options *, uint64_t now_ns);
bool request_is_active(const struct request *);
bool request_is_podmans(const struct request *); /* Podman answers */

/* The host reports events (of epoll) for fd, or a deadline has passed (fd -1). Calls ended() for
 * each ended request; ended() may begin others. */
void client_run(struct client *, int fd, uint32_t events, uint64_t now_ns);
/* When client_run() is to be called at the latest (CLOCK_MONOTONIC ns); UINT64_MAX: never. */
uint64_t client_deadline(const struct client *);
#endif

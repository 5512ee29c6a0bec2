/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients of a listening socket, in the loop: a bounded number of them, each with a buffer for what
 * it sends, one for what it is sent, and a deadline. While there are too many nobody is accepted:
 * they wait in the kernel's queue. What a client is sent goes out by the loop, never within a call.
 */
#ifndef NET_SERVER_H
#define NET_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "net/loop.h"

struct server;

struct client {
	struct server *server;
	struct client *next, *prev;
	struct loop_watch *watch;
	struct loop_timer *timer;
	int fd;
	struct buf in; /* what came and was not used; at most max_in bytes */
	struct buf out;
	size_t sent;    /* of out */
	bool reading;   /* client_read() */
	bool eof;       /* it will send no more */
	uint32_t state; /* the callbacks', 0 at first */
	void *user;     /* the callbacks', NULL at first */
};

/* Each may drop the client, as the last that it does with it. */
struct server_callbacks {
	/* Somebody came: set a deadline. False: it is dropped. */
	bool (*accepted)(void *arg, struct client *);
	void (*readable)(void *arg, struct client *); /* more in `in`, or `eof` */
	void (*written)(void *arg, struct client *);  /* all of `out` has gone */
	void (*late)(void *arg, struct client *);     /* the deadline is over */
	void (*gone)(void *arg, struct client *);     /* it is being freed; NULL: nothing to do */
};

/* Takes the listening fd over, also when it fails. The callbacks live as long as it. */
int server_new(struct server **ret, struct loop *, int fd, uint32_t max_clients, size_t max_in,
	       const struct server_callbacks *, void *arg);
void server_free(struct server *); /* and its clients; NULL is fine */

/* What is in `out` is to be sent. */
void client_send(struct client *);
/* Whether more is to be read; true at first. Nothing is while `in` is full. */
void client_read(struct client *, bool);
/* CLOCK_MONOTONIC; takes the place of the one before. UINT64_MAX: none. */
void client_deadline(struct client *, uint64_t at_ns);
void client_drop(struct client *);
#endif

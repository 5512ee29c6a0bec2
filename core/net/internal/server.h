/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clients of a listening socket: a bounded number, each with an input buffer, an output buffer
 * and a deadline. Further connections wait in the kernel's queue, or take an older client's place
 * (`idle`). Output is sent by the loop, never
 * within a call. For the loop's thread.
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
	struct buf in; /* received and not consumed; at most max_in bytes */
	struct buf out;
	size_t sent;    /* bytes of out */
	bool reading;   /* client_set_reading() */
	bool eof;       /* the client has shut down its sending side */
	uint32_t state; /* for the callbacks; initially 0 */
	void *user;     /* for the callbacks; initially NULL */
};

/* Each function may drop the client, as its last action on it. */
struct server_callbacks {
	/* A new client; the callback sets a deadline. false: the client is dropped. */
	bool (*accepted)(void *arg, struct client *);
	void (*readable)(void *arg, struct client *); /* `in` grew, or `eof` */
	void (*written)(void *arg, struct client *);  /* all of `out` was sent */
	void (*late)(void *arg, struct client *);     /* the deadline has passed */
	/* A further client takes the place of the oldest idle client, or, if none is idle, of the
	 * oldest. NULL: it waits until a client was dropped. Does not drop the client. */
	bool (*idle)(const struct client *);
	void (*dropped)(void *arg, struct client *); /* before it is freed; NULL is fine */
};

/* Takes the listening descriptor over, also on failure. The callbacks are borrowed until
 * server_free(). 0 or -errno. */
int server_new(struct server **ret, struct loop *, int fd, uint32_t max_clients, size_t max_in,
	       const struct server_callbacks *, void *arg);
void server_free(struct server *); /* with its clients; NULL is fine */

/* Begins to send `out`. */
void client_send(struct client *);
/* Whether input is read; initially true. Nothing is read while `in` is full. */
void client_set_reading(struct client *, bool);
/* Replaces the deadline (CLOCK_MONOTONIC ns); UINT64_MAX: none. */
void client_set_deadline(struct client *, uint64_t at_ns);
void client_drop(struct client *); /* disconnects and frees */
#endif

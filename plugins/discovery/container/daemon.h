/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows the containers of one daemon by its socket: a list, and then events if the daemon has
 * them; otherwise a list every period. On the control thread.
 */
#ifndef CONTAINER_DAEMON_H
#define CONTAINER_DAEMON_H

#include "client.h"
#include "names.h"
#include "reader.h"

struct daemon;

struct daemon_options {
	const struct fusee_self *self;
	struct client *client;
	struct names *names;
	struct chosen_list chosen;
	uint64_t period_ns; /* between lists where there are no events */
	uint64_t now_ns;    /* of the callback that runs (CLOCK_MONOTONIC) */
};

struct daemon_socket {
	const char *path;
	enum daemon_kind kind;
	uint32_t number; /* names the daemon in targets' keys */
	bool optional;   /* its absence is not a failure */
};

/* All is borrowed until daemon_free(). NULL: no memory. */
struct daemon *daemon_new(const struct daemon_options *, const struct daemon_socket *);
void daemon_free(struct daemon *); /* NULL is valid */

/* Sends the requests that are due. 0, or what the host returned for a target. */
int daemon_go_on(struct daemon *);
/* When daemon_go_on() is to be called at the latest (CLOCK_MONOTONIC ns); UINT64_MAX: never. */
uint64_t daemon_deadline(const struct daemon *);
/* Whether its containers are known, or it is optional and has failed once. */
bool daemon_is_settled(const struct daemon *);
#endif

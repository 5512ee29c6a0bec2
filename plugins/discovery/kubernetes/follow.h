/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows the pods of one node: a list of them, then a watch of their changes from the list's
 * version on, repeatedly. A kubelet has no watches: its pods are listed once a period. On the
 * control thread.
 */
#ifndef KUBERNETES_FOLLOW_H
#define KUBERNETES_FOLLOW_H

#include "pods.h"
#include "server.h"

struct follow;

struct follow_options {
	const struct fusee_self *self;
	const struct server *server;
	const struct chosen *chosen;
	uint32_t nchosen;
	const char *node;
	uint64_t silence_ns; /* a request is abandoned after this time without a byte */
	uint64_t period_ns;  /* between lists of server->kubelet */
};

/* All is borrowed until follow_close(). NULL: no memory. */
struct follow *follow_open(const struct follow_options *);
void follow_close(struct follow *); /* NULL is valid */

/* Begins, in the callback start(). 0 or -errno. */
int follow_start(struct follow *);
/* For the host's ready(). 0, -ENOMEM, or what a call of the host returned. */
int follow_ready(struct follow *, int fd, uint32_t events);
#endif

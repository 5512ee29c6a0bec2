/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answers of daemons, read piece by piece as they come: JSON of Docker's API, which Podman has
 * too, and gRPC messages of containerd and of the CRI. One object or message at a time is in
 * memory, and of it only what struct container has.
 */
#ifndef CONTAINER_READER_H
#define CONTAINER_READER_H

#include "facts.h"

#define READER_OBJECT (1u << 20)  /* bytes of one object of JSON */
#define READER_MESSAGE (8u << 20) /* of one gRPC message: the CRI lists all containers in one */

enum daemon_kind { DAEMON_DOCKER, DAEMON_CONTAINERD, DAEMON_CRI };

enum ask {
	ASK_EVENTS, /* changes, without an end */
	ASK_SPACES, /* containerd's namespaces */
	ASK_LIST,   /* all containers; of containerd those of a namespace */
	ASK_ONE,    /* one container; of the CRI its status */
};

enum found {
	FOUND_CONTAINER, /* with all that is known of it */
	FOUND_CHANGED,   /* its id and space only: it has to be looked up */
	FOUND_ENDED,     /* its id and space only */
	FOUND_SPACE,     /* its space only */
};

struct reader;

/* Is called for each container that is read, which is valid until it returns; not 0: the rest is
 * not read. */
typedef int (*reader_each)(void *arg, enum found, const struct container *);

/* chosen: borrowed until reader_free(). NULL: no memory. */
struct reader *reader_new(enum daemon_kind, struct chosen_list chosen, reader_each each, void *arg);
void reader_free(struct reader *); /* NULL is valid */

/* Begins an answer. space: of the request; "": none. 0 or -ENOMEM. */
int reader_begin(struct reader *, enum ask, const char *space);
/* The next bytes of it. 0; -EBADMSG: it is not what was requested, reader_problem() says why;
 * -ENOMEM; or what each() returned. After an error only reader_begin() is allowed. */
int reader_feed(struct reader *, const char *bytes, size_t n);
/* The answer is complete. 0, or -EBADMSG. */
int reader_end(struct reader *);
/* "not JSON", "no list", "not UTF-8", "too large", "wrong protobuf", "compressed", "incomplete";
 * NULL: there is none. */
const char *reader_problem(const struct reader *);
/* The sentence of an answer of Docker's API that is an error, without control characters; "". */
const char *reader_message(const struct reader *);
#endif

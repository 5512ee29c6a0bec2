/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the answers of daemons incrementally: JSON of Docker's API, which Podman has too, and gRPC
 * messages of containerd and of the CRI. Of one object or message at a time, only the data for
 * struct container is in memory.
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
	FOUND_CONTAINER, /* with all its data */
	FOUND_CHANGED,   /* with id and space only: it must be looked up */
	FOUND_ENDED,     /* with id and space only */
	FOUND_SPACE,     /* with its space only */
};

struct reader;

/* Called for each container, which is valid until it returns; a result other than 0 ends the
 * reading. */
typedef int (*reader_each)(void *arg, enum found, const struct container *);

/* chosen: borrowed until reader_free(). NULL: no memory. */
struct reader *reader_new(enum daemon_kind, struct chosen_list chosen, reader_each each, void *arg);
void reader_free(struct reader *); /* NULL is valid */

/* Begins an answer. space: of the request; "": none. 0 or -ENOMEM. */
int reader_begin(struct reader *, enum ask, const char *space);
/* The next bytes of it. 0; -EBADMSG: not the requested answer, see reader_problem(); -ENOMEM; or
 * what each() returned. After an error only reader_begin() is allowed. */
int reader_feed(struct reader *, const char *bytes, size_t n);
/* The answer is complete. 0, or -EBADMSG. */
int reader_end(struct reader *);
/* "not JSON", "no list", "not UTF-8", "too large", "wrong protobuf", "compressed", "incomplete";
 * NULL: there is none. */
const char *reader_problem(const struct reader *);
/* The sentence of an answer of Docker's API that is an error, without control characters; "". */
const char *reader_message(const struct reader *);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the answers of the API server incrementally: a list of pods, the events of a watch, or an
 * error (kind Status). Of one pod at a time, only the data for struct pod is in memory.
 */
#ifndef KUBERNETES_PARSE_H
#define KUBERNETES_PARSE_H

#include "pod.h"

#define PARSE_OBJECT (8u << 20)   /* bytes of one object: the API has 1.5 MiB at most */
#define PARSE_CONTINUE (8u << 10) /* bytes of a list's token for its next page */

enum parse_event {
	PARSE_ITEM,     /* a pod of a list */
	PARSE_PUT,      /* a pod was added or has changed */
	PARSE_DELETE,   /* a pod was deleted */
	PARSE_BOOKMARK, /* pod->version is all that it has */
	PARSE_ERROR,    /* the watch has failed: parser->code, message */
};

struct parser;

/* The data of an answer besides its pods. */
struct answer {
	char version[POD_NAME];      /* of a list: resourceVersion */
	char next[PARSE_CONTINUE];   /* of a list: the token of its next page, "": it is complete */
	char message[512];           /* of an error; control characters are '?' */
	bool list;                   /* it is of the kind PodList */
	int64_t code, retry_after;   /* of an error; retry_after: seconds, 0: not said */
	uint32_t containers_ignored; /* beyond POD_CONTAINERS, of all pods */
};

/* chosen: borrowed until parser_free(). each() is called for each pod and event; the pod is valid
 * until it returns; a result other than 0 ends the reading. NULL: no memory. */
struct parser *parser_new(const struct chosen *chosen, uint32_t nchosen,
			  int (*each)(void *arg, enum parse_event, const struct pod *), void *arg);
void parser_free(struct parser *); /* NULL is valid */

/* Begins an answer. 0 or -ENOMEM. */
int parser_begin(struct parser *);
/* The next bytes of it. 0, -EBADMSG: it is not JSON, or an object of it is too large or too deep;
 * -ENOMEM; or what each() returned. After an error only parser_begin() is allowed. */
int parser_feed(struct parser *, const char *bytes, size_t n);
/* The answer is complete. 0, or -EBADMSG: it ended within a value. */
int parser_end(struct parser *);
const struct answer *parser_answer(const struct parser *);
#endif

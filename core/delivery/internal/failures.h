/* SPDX-License-Identifier: Apache-2.0 */
/* The failures of one sink: its backoff, and their log messages. For the sink's thread, without a
 * lock. Part of delivery.c. */
#ifndef DELIVERY_FAILURES_H
#define DELIVERY_FAILURES_H

#include <stdbool.h>
#include <stdint.h>

#include "delivery/sink_out.h"
#include "plugin/instance.h"

struct failures {
	struct fusee_instance *instance;
	uint64_t first_ns, max_ns; /* backoff */
	uint64_t next_ns;          /* the next backoff; 0: the first */
	uint64_t random;           /* state of the jitter */
	uint64_t logged_at;        /* the last failure that was logged; 0: none */
	bool failing;              /* a failure was logged, and nothing delivered since */
	bool denied;               /* the sink is denied, and that was logged */
};

/* 0 for a time: its default, 1 s and 5 min. */
void failures_init(struct failures *, struct fusee_instance *, uint64_t first_ns, uint64_t max_ns);
/* The result of consume(): logs it, at most once a minute, a denial at most once in half an hour.
 * Returns the ns to wait until the next attempt: 0, or after -EAGAIN the time that the sink named,
 * or else the backoff. sentence: of failures_sentence(). */
uint64_t failures_consumed(struct failures *, int err, const char *sentence,
			   const struct fusee_sink_out *);
/* The error of flush(): logs it, under the same limit. */
void failures_flushed(struct failures *, int err, const char *sentence);
/* The sentence for a failed call, malloc'ed; NULL: no memory. *text: its part after the name of the
 * instance, or a static text; never NULL. */
char *failures_sentence(struct failures *, int err, const char **text);
#endif

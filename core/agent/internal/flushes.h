/* SPDX-License-Identifier: Apache-2.0 */
/* Flush requests of the control socket: close all windows, wait for their symbols, make all sinks
 * try all queued profiles, then answer. For the control thread. */
#ifndef AGENT_FLUSHES_H
#define AGENT_FLUSHES_H

#include "agent/internal/instances.h"
#include "net/control.h"

struct flush_request;

struct flushes {
	struct instances *instances; /* borrowed */
	struct flush_request *first;
};

/* Begins a request; it is answered within 30 s. */
void flushes_add(struct flushes *, struct control_reply *);
/* Answers all requests with an error; before control_free(). */
void flushes_cancel(struct flushes *);
/* Frees the requests; after instances_fini(), since deliveries write to them. */
void flushes_fini(struct flushes *);
#endif

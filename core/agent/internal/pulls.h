/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles that clients pull over HTTP. Each has a window of its own, with its own limit of memory,
 * so that it takes nothing from the sinks' windows. It changes no rate. A thread encodes the
 * profiles. For the control thread.
 */
#ifndef AGENT_PULLS_H
#define AGENT_PULLS_H

#include "agent/internal/instances.h"
#include "net/http.h"

struct pulls;

/* instances: borrowed until pulls_free(). 0 or -errno. */
int pulls_new(struct pulls **ret, struct instances *);
/* Begins a pull, which is answered later, or answers with an error. query: as in struct http_page.
 */
void pulls_begin(struct pulls *, struct http_request *, const char *query);
/* To be called when sampling is paused: ends all windows now and answers with their profiles. */
void pulls_paused(struct pulls *);
/* Answers all requests with an error, later requests too. */
void pulls_stop(struct pulls *);
/* After http_free(). Waits for the thread. NULL is fine. */
void pulls_free(struct pulls *);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What client.c (the queue) and client_step.c (steps, which calls client.c) share. For no other
 * file. */
#ifndef WORKER_CLIENT_H
#define WORKER_CLIENT_H

#include "worker/cache.h"
#include "worker/child.h"
#include "worker/refusals.h"
#include "worker/worker.h"

struct client_request;

/* Times are CLOCK_MONOTONIC, ns. */
struct worker {
	char *plugin_dir;
	uint64_t memory_limit; /* bytes */
	uint32_t idle_ms, request_ms;
	struct cache *cache; /* NULL: none */
	struct refusals refusals;
	int epoll, timer;
	uint64_t next_id; /* of requests to both processes */
	struct output_limit output_limit;
	/* The process that inspects and symbolizes, and its queue. */
	struct child child;
	struct client_request *head, **tail;
	uint32_t pending;    /* requests in the queue */
	bool sent;           /* head was sent and has no reply yet */
	uint64_t not_before; /* when head is retried after a lack of memory; 0: now */
	uint64_t deadline;   /* of head if sent */
	uint64_t idle_since;
	/* The process that executes steps. */
	struct child stepper;
	uint64_t stepper_idle_since;
	uint32_t steps; /* of this process */
};

/* Starts the process unless it runs. 0 or -errno. */
int client_start(struct worker *, struct child *);
/* Ends the process if it runs; why: see child_stop(). */
void client_stop(struct worker *, struct child *, char *why, size_t len);
/* Sets the timer to the next time limit, retry or idle exit. */
void client_set_timer(struct worker *);
#endif

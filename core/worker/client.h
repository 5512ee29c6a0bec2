/* SPDX-License-Identifier: Apache-2.0 */
/* What client.c (the queue) and client_step.c (the blocking step) share. For nobody else. */
#ifndef WORKER_CLIENT_H
#define WORKER_CLIENT_H

#include "worker/cache.h"
#include "worker/child.h"
#include "worker/refusals.h"
#include "worker/worker.h"

struct job;

struct worker {
	char *plugin_dir;
	uint64_t memory_limit;
	uint32_t idle_ms, request_ms;
	struct cache *cache; /* NULL: none */
	struct refusals refusals;
	int epoll, timer;
	/* Inspections and names, one at a time. */
	struct child child;
	struct job *head, **tail; /* head is under way if `sent` */
	uint32_t pending;
	bool sent;
	uint64_t not_before;                    /* of head, which memory was short for */
	uint64_t next_id, deadline, idle_since; /* ns, CLOCK_MONOTONIC */
	/* Steps: a process of their own, as they can't wait for the others. */
	struct child stepper;
	uint64_t stepper_idle_since;
	uint32_t steps; /* of this stepper */
};

/* Starts one of the two where it does not run. 0 or -errno. */
int client_start(struct worker *, struct child *);
void client_stop(struct worker *, struct child *, char *why, size_t len);
/* The timer to the next thing that is due. */
void client_set_timer(struct worker *);
#endif

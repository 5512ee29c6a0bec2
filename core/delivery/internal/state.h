/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A delivery, for delivery.c (its threads, and the calls of the control thread), attempt.c (a
 * profile), spooling.c (the spool's thread), state.c and sink_out.c (files for the sink). Only they
 * include this.
 *
 * All of struct delivery is under the lock, except instance, ops, files and spool.dir, which are
 * constant, and failures, which belongs to the sink's thread. Functions whose comment says "locked"
 * are called with the lock held and return with it held, but may release it in between.
 */
#ifndef DELIVERY_STATE_H
#define DELIVERY_STATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "delivery/delivery.h"
#include "delivery/internal/failures.h"
#include "delivery/internal/queue.h"

#define DELIVERY_SECOND 1000000000ull
#define DELIVERY_NEVER UINT64_MAX
#define DELIVERY_NOTHING 1

enum spool_state {
	SPOOL_OPENING, /* its profiles are not known yet: nothing is delivered */
	SPOOL_WORKS,   /* all profiles go through it */
	SPOOL_FAILS,   /* nothing can be written; its profiles are delivered before the queue's */
	SPOOL_CLOSED,
};

/* Of a delivery with a spool; the file calls are made without the lock. */
struct delivery_spool {
	char *dir;           /* NULL: the delivery has no spool */
	struct spool *files; /* NULL: not open. The spool's thread opens and closes it */
	enum spool_state state;
	pthread_t thread;
	struct spool_limits limits;
	uint64_t sync_ns;
	bool limits_changed;
	bool has_profiles;   /* or may have: the sink's thread checks */
	bool sink_ended;     /* the sink's thread does not use the files any more */
	uint64_t busy_since; /* since then another process or delivery has the folder; 0: none */
	uint64_t try_at;     /* the next attempt to open or to write */
	uint64_t sync_at;    /* 0: all is synced */
	uint64_t logged_at;  /* the last failure that was logged; 0: it works */
};

struct flush;

struct delivery {
	struct fusee_instance *instance;
	const struct fusee_sink_ops *ops;
	struct delivery_files files;
	struct failures failures;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t sink_thread, deadline_thread;
	uint32_t threads;  /* that run */
	bool stop;         /* delivery_stop() was called */
	bool cancelled;    /* cancel() of the sink was called */
	bool ended;        /* the sink's thread makes no more calls */
	bool abandoned;    /* delivery_free() did not wait */
	uint64_t deadline; /* of stop */
	uint64_t retry_at; /* 0: at once */
	bool watch;        /* a change of a file with a secret ends the wait for retry_at */
	uint64_t look_at;  /* when to check such files */
	struct delivery_queue queue;
	struct delivery_spool spool;
	struct flush *flushes;
};

void delivery_init_lock(struct delivery *);
/* Frees the delivery; no thread may use it any more. */
void delivery_destroy(struct delivery *);
/* Locked. Waits for a change of the delivery, or until a time (CLOCK_MONOTONIC ns,
 * DELIVERY_NEVER). */
void delivery_wait(struct delivery *, uint64_t until);
void delivery_name_thread(const struct delivery *);
/* Locked; releases the lock. The last call of a thread: the last thread of an abandoned delivery
 * frees it. */
void delivery_exit_thread(struct delivery *);

/* The source of the next profile. */
enum delivery_source { NOWHERE, QUEUE, SPOOL };

/* For the sink's thread, all locked. Profiles in the spool are older than those in the queue. */
enum delivery_source delivery_next_source(const struct delivery *);
/* The spool's thread still has profiles of the queue to write: a source will follow. */
bool delivery_is_coming(const struct delivery *);
/* Tries the oldest profile of the source; the result of consume(), or
 * DELIVERY_NOTHING: the spool has none. */
int delivery_attempt(struct delivery *, enum delivery_source);

/* For the sink's thread, locked. Waits for a change of the delivery, for a time, or until it is
 * time to check whether a secret has changed, which sets retry_at to 0. */
void delivery_rest(struct delivery *, uint64_t until);

/* The spool's thread, of a delivery that has a spool: opens it, writes the queue's profiles to it,
 * and closes it when the sink's thread has ended. */
void *delivery_run_spool(void *delivery);
/* Without the lock. Takes over the spool's counts. */
void delivery_count_spool(struct delivery *);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The delivery of one sink instance: its thread, and a bounded queue of profiles. A slow or failing
 * sink loses only its own profiles, which are counted: no call except delivery_free() waits for it.
 * With a spool, the queue's profiles are written to it at once and delivered from it, and profiles
 * that wait at the end stay in it.
 *
 * Threads: calls are for the control thread. consume(), flush() and fini() of the sink run on the
 * sink's thread, cancel() on the deadline thread, because the sink's thread may hang in a call.
 */
#ifndef DELIVERY_DELIVERY_H
#define DELIVERY_DELIVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "spool/spool.h"
#include "plugin/instance.h"
#include "profile/builder.h"
#include "loss/loss.h"

struct delivery;

/* Opens a file for the sink's instance, as open_file() of struct fusee_sink_host says. [any thread]
 */
struct delivery_files {
	int (*open)(void *arg, struct fusee_str build_id, uint64_t max_bytes);
	void *arg;
};

struct delivery_options {
	uint64_t queue_bytes;
	/* Backoff in ns after -EAGAIN without retry_after(): doubles from first to max, with
	 * jitter. 0: 1 s, 5 min. */
	uint64_t backoff_first_ns, backoff_max_ns;
	const char *spool; /* folder of spools; copied. NULL or "": only the queue */
	struct spool_limits spool_limits;
	uint64_t spool_sync_ns; /* maximum time from a write to its sync */
	struct delivery_files files;
};

struct delivery_stats {
	uint64_t delivered, retried;
	struct loss_account losses;      /* profiles, by the reasons of LOSS_DELIVERY */
	uint64_t samples_lost;           /* in lost profiles, and in lost parts of profiles */
	uint64_t queued, queued_bytes;   /* including the profile in consume() */
	uint64_t last_lost_ns;           /* the last loss, CLOCK_MONOTONIC; 0: none */
	uint64_t last_ok_ns;             /* the last delivery, CLOCK_MONOTONIC; 0: none */
	uint64_t blocked_since;          /* the beginning of the running call; 0: none runs */
	uint64_t retry_at;               /* the next attempt, CLOCK_MONOTONIC; 0: at once */
	uint64_t denied_since;           /* CLOCK_MONOTONIC; 0: the sink is not denied */
	char last_error[256];            /* "" if the last call succeeded */
	bool has_spool;                  /* the members below describe it */
	uint64_t spooled, spooled_bytes; /* profiles that wait in it */
	uint64_t spooled_oldest_ns;      /* CLOCK_REALTIME; 0: none waits */
	char spool_error[256];           /* "" while it can be written */
};

/* The host calls of a sink, for the host table that sink instances are made with. */
extern const struct fusee_sink_host delivery_host;

/* Takes the instance over (instance->owner becomes the delivery) and starts the threads. 0 or
 * -errno: the instance is then still the caller's. */
int delivery_new(struct delivery **ret, struct fusee_instance *, const struct delivery_options *);
/* Queues the profile of a finished builder; takes the builder over, also if the profile is lost.
 * The profile's size is builder_bytes(). If there is no room, the oldest profiles are lost; the
 * profile in consume() is lost last, and only if that attempt fails. */
void delivery_put(struct delivery *, struct builder *, const struct fusee_profile *);
/* Counts a profile of so many samples that could not be built. */
void delivery_not_built(struct delivery *, uint64_t samples);
/* Changes the limits of the spool, if there is one. */
void delivery_set_spool(struct delivery *, const struct spool_limits *, uint64_t sync_ns);
/* Sets the size of the queue; the oldest profiles that no longer fit are lost. */
void delivery_set_queue_bytes(struct delivery *, uint64_t bytes);
/* Tries all queued profiles now, without backoff, until an attempt fails with -EAGAIN, then calls
 * flush() of the sink. done(arg, err) is called on a thread of the delivery, at the latest at the
 * deadline (CLOCK_MONOTONIC): 0, the error of an attempt or of flush(), -ETIMEDOUT, or -ECANCELED
 * at the end. It is called before this returns with -ENOMEM, -EBUSY (16 flushes run) or -ECANCELED.
 */
void delivery_flush(struct delivery *, uint64_t deadline_ns, void (*done)(void *arg, int err),
		    void *arg);
void delivery_stats(struct delivery *, struct delivery_stats *);
/* Tries the queued profiles until deadline_ns (CLOCK_MONOTONIC), then calls cancel() of the sink;
 * remaining profiles are lost (ended), or stay in the spool. Returns at once. Of several deadlines
 * the earliest applies. */
void delivery_stop(struct delivery *, uint64_t deadline_ns);
/* Whether the threads have ended or were abandoned, so that delivery_free() does not wait. */
bool delivery_ended(struct delivery *);
/* Stops at once unless delivery_stop() was called, waits for the threads, calls fini(), frees. A
 * sink that ignores cancel() is abandoned 5 s after the deadline: that is logged, and its thread
 * frees the delivery if it ever returns. The metrics remain: metric_forget("instance", name). NULL
 * is fine. */
void delivery_free(struct delivery *);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sink instance at work: its thread, and the bounded queue of profiles that wait for it. A sink
 * that is slow, dead or gone costs counted profiles of its own and nothing else: no call here but
 * delivery_free() waits for it.
 *
 * Threads: calls are for the control thread; consume, flush and fini run on the delivery's own, and
 * cancel on another one of its, which keeps the deadlines while the first may hang.
 */
#ifndef DELIVERY_DELIVERY_H
#define DELIVERY_DELIVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "plugin/instance.h"
#include "profile/builder.h"

struct delivery;

struct delivery_options {
	uint64_t queue_bytes;
	/* Backoff after -EAGAIN without retry_after(): doubles from first to most, with jitter.
	 * 0: 1 s, 5 min. */
	uint64_t backoff_first_ns, backoff_most_ns;
};

struct delivery_stats {
	uint64_t delivered, retried;
	uint64_t queue_full, refused, ended; /* profiles lost: no room; consume() failed; left at
						the end */
	uint64_t queued, queued_bytes;       /* with the one that is being tried */
	uint64_t samples_lost;               /* in lost profiles */
	uint64_t last_ok_ns;                 /* CLOCK_MONOTONIC, 0 never */
	uint64_t blocked_since;              /* the call under way began, 0 none */
	uint64_t retry_at;                   /* CLOCK_MONOTONIC: nothing is tried before, 0 none */
	char last_error[256];                /* since something was delivered; "" none */
};

/* For the host table that instances of sinks are made with. */
extern const struct fusee_sink_host delivery_host;

/* Takes the instance over (of a sink; instance->owner is the delivery from now on) and starts its
 * thread. 0 or -errno: then the instance is still the caller's. */
int delivery_new(struct delivery **ret, struct fusee_instance *, const struct delivery_options *);
/* A finished builder's profile; takes the builder over, whatever happens. Bytes: builder_bytes().
 * The oldest waiting ones go when there is no room; they are counted. The one that is in consume()
 * goes last: if it is not taken then. After delivery_stop() it is counted as `ended`. */
void delivery_put(struct delivery *, struct builder *, const struct fusee_profile *);
/* The queue has another size from now on; what it has no room for any more goes, counted. */
void delivery_queue(struct delivery *, uint64_t queue_bytes);
/* Everything that waits is tried now, without backoff, until something is not taken, then
 * ops->flush(). done(arg, err) is called on a thread of the delivery's, at the latest at the
 * deadline: 0, what was answered (-EAGAIN ..), -ETIMEDOUT, -ECANCELED at the end. No memory, too
 * many flushes at once, or stopped: at once, before this returns, with -ENOMEM, -EBUSY, -ECANCELED.
 */
void delivery_flush(struct delivery *, uint64_t deadline_ns, void (*done)(void *arg, int err),
		    void *arg);
void delivery_stats(struct delivery *, struct delivery_stats *);
const struct fusee_instance *delivery_instance(const struct delivery *);
/* Tries what waits until CLOCK_MONOTONIC deadline_ns, then ops->cancel(); what is left is counted
 * as `ended`. Asynchronous: delivery_free() waits for the end of it. Of two deadlines the earlier
 * one counts. */
void delivery_stop(struct delivery *, uint64_t deadline_ns);
/* Its threads have come to their end, or were given up: delivery_free() will not wait. */
bool delivery_ended(struct delivery *);
/* Waits for the thread, fini, frees. A sink that ignores cancel is given up 5 s after the deadline:
 * it is named and left behind; it cleans up if it ever comes back. Without delivery_stop() the
 * deadline is now. The metrics stay: metric_forget("instance", name). NULL is fine. */
void delivery_free(struct delivery *);
#endif

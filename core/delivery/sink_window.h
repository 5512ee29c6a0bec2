/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sink's way out: its window of samples, which is closed every so often, named, built into
 * profiles and put into the queue of its delivery. For the control thread.
 */
#ifndef DELIVERY_SINK_WINDOW_H
#define DELIVERY_SINK_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "config/plan.h"
#include "delivery/delivery.h"
#include "net/loop.h"
#include "sampling/build_profile.h"
#include "sampling/profiler.h"

/* What all windows of an agent share. */
struct sink_window_context {
	struct loop *loop;
	struct profiler *profiler;
	uint64_t period_ns;       /* of the default rate */
	void (*drain)(void *arg); /* what was sampled until now, into the window */
	/* Of a label set: its labels, until the next call. */
	const struct fusee_label *(*labels)(void *arg, uint32_t set, uint32_t *n);
	void *arg;
};

struct sink_window;

/* Takes the instance over and opens a window of the profiler. 0 or -errno: then the instance is
 * still the caller's. */
int sink_window_new(struct sink_window **ret, const struct sink_window_context *,
		    const struct plan_instance *, struct fusee_instance *);
/* Its place in a newer plan: window, queue and labels may have changed, the instance has not. The
 * plan's instance is borrowed until the next call, or sink_window_free(). -ENOMEM: all but the
 * window's length has changed. */
int sink_window_replan(struct sink_window *, const struct plan_instance *, uint64_t period_ns);
/* The window ends now; its profiles come into the queue when they have names. */
void sink_window_close_window(struct sink_window *);
/* No window of it is being named. */
bool sink_window_quiet(const struct sink_window *);
uint32_t sink_window_slot(const struct sink_window *);
struct delivery *sink_window_delivery(const struct sink_window *);
const struct plan_instance *sink_window_plan(const struct sink_window *);
/* Collectors that are being named: at most n into c. */
uint32_t sink_window_pending(const struct sink_window *, const struct collector **c, uint32_t n);
/* No more samples: the window that is open is closed, what waits goes out until the deadline. */
void sink_window_stop(struct sink_window *, uint64_t deadline_ns);
/* After sink_window_stop(): waits for the delivery's end. What is still being named is lost, and
 * counted. Its metrics stay. NULL is fine. */
void sink_window_free(struct sink_window *);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sink's way out: its window of samples, which is closed every so often, named, built into
 * profiles and put into the queue of its delivery. For the control thread.
 */
#ifndef DAEMON_OUTLET_H
#define DAEMON_OUTLET_H

#include <stdbool.h>
#include <stdint.h>

#include "config/plan.h"
#include "daemon/delivery.h"
#include "daemon/loop.h"
#include "sampling/build.h"
#include "sampling/pipeline.h"

/* What all outlets of an agent share. */
struct outlet_context {
	struct loop *loop;
	struct worker *worker;
	struct pipeline *pipeline;
	struct names *names;
	struct snapshot *snapshot;
	uint64_t period_ns;       /* of the default rate */
	void (*drain)(void *arg); /* what was sampled until now, into the window */
	/* Of a label set: its labels, until the next call. */
	const struct fusee_label *(*labels)(void *arg, uint32_t set, uint32_t *n);
	void *arg;
};

struct outlet;

/* Takes the instance over. slot: the pipeline's, free. 0 or -errno: then the instance is still the
 * caller's. */
int outlet_new(struct outlet **ret, const struct outlet_context *, const struct plan_instance *,
	       struct fusee_instance *, uint32_t slot);
/* Its place in a newer plan: window, queue and labels may have changed, the instance has not. The
 * plan's instance is borrowed until the next call, or outlet_free(). -ENOMEM: all but the window's
 * length has changed. */
int outlet_replan(struct outlet *, const struct plan_instance *, uint64_t period_ns);
/* The window ends now; its profiles come into the queue when they have names. */
void outlet_close_window(struct outlet *);
/* No window of it is being named. */
bool outlet_quiet(const struct outlet *);
uint32_t outlet_slot(const struct outlet *);
struct delivery *outlet_delivery(const struct outlet *);
const struct plan_instance *outlet_plan(const struct outlet *);
/* Collectors that are being named: at most n into c. */
uint32_t outlet_pending(const struct outlet *, const struct collector **c, uint32_t n);
/* No more samples: the window that is open is closed, what waits goes out until the deadline. */
void outlet_stop(struct outlet *, uint64_t deadline_ns);
/* After outlet_stop(): waits for the delivery's end. What is still being named is lost, and
 * counted. Its metrics stay. NULL is fine. */
void outlet_free(struct outlet *);
#endif

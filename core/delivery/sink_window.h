/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The windows of one sink: at each period of the plan the open window is closed, its symbols are
 * requested, and its profiles are built and put into the sink's delivery. For the control thread.
 */
#ifndef DELIVERY_SINK_WINDOW_H
#define DELIVERY_SINK_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "config/plan.h"
#include "delivery/delivery.h"
#include "net/loop.h"
#include "profiler/build_profile.h"
#include "profiler/profiler.h"

/* What the windows of all sinks share; borrowed. */
struct sink_window_context {
	struct loop *loop;
	struct profiler *profiler;
	uint64_t period_ns; /* of the plan's default rate */
	/* Of samplers, each of which has profiles of its own. */
	struct wait_periods chosen_periods;
	uint32_t hit_period;       /* of allocations, which have profiles of their own; 0: none */
	const struct hooks *hooks; /* .. as each of these has; NULL: none */
	void (*drain)(void *arg);  /* drains the rings into the open windows */
	/* Adds what is in use to the collector of a slot's window, which was closed; NULL: that is
	 * in no profile. */
	void (*add_in_use)(void *arg, uint32_t slot, struct collector *);
	/* The labels of a label set, valid until the next call. */
	const struct fusee_label *(*labels)(void *arg, uint32_t set, uint32_t *n);
	void *arg; /* of these three */
	/* Called with each profile of CPU time before the sink receives it; NULL is fine. */
	void (*built)(void *built_arg, const struct plan_instance *, const struct fusee_profile *);
	void *built_arg;
	struct delivery_files files; /* of their deliveries */
};

struct sink_window;

/* Takes the instance over, creates its delivery and opens the first window. The plan's instance is
 * borrowed. 0 or -errno: the instance is then still the caller's. */
int sink_window_new(struct sink_window **ret, const struct sink_window_context *,
		    const struct plan_instance *, struct fusee_instance *);
/* The same sink in a newer plan, whose window length, queue size and labels may differ. The plan's
 * instance is borrowed until the next call or sink_window_free(). -ENOMEM: the window keeps its
 * length, the rest has changed. */
int sink_window_replan(struct sink_window *, const struct plan_instance *, uint64_t period_ns);
/* Hands a profile that is not of a window to the delivery; takes the builder over. */
void sink_window_put(struct sink_window *, struct builder *, const struct fusee_profile *);
/* Closes the open window; its profiles are put into the delivery when it has its symbols. */
void sink_window_close_window(struct sink_window *);
/* No closed window that ended by until_ns (CLOCK_MONOTONIC) waits for symbols. */
bool sink_window_is_idle(const struct sink_window *, uint64_t until_ns);
/* The sink's problem: profiles are late, or were lost within its last two periods (at least a
 * minute): "a profile was lost"; NULL: none. now: CLOCK_MONOTONIC ns. */
const char *sink_window_problem(const struct sink_window *, uint64_t now);
uint32_t sink_window_slot(const struct sink_window *); /* of the pipeline */
struct delivery *sink_window_delivery(const struct sink_window *);
const struct plan_instance *sink_window_plan(const struct sink_window *);
/* Writes the collectors of closed windows that wait for symbols to c, at most n; their number. */
uint32_t sink_window_pending(const struct sink_window *, const struct collector **c, uint32_t n);
/* Closes the last window. The delivery ends at deadline_ns (CLOCK_MONOTONIC) at the latest. */
void sink_window_stop(struct sink_window *, uint64_t deadline_ns);
/* sink_window_stop() if it was not called, then waits for the delivery's end. Windows that still
 * wait for symbols are lost and counted. The metrics remain. NULL is fine. */
void sink_window_free(struct sink_window *);
#endif

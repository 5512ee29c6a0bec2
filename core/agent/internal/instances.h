/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plugin instances of the running plan: its sinks with their windows, its discoveries, and the
 * sinks of earlier plans that still deliver. For the control thread.
 */
#ifndef AGENT_INSTANCES_H
#define AGENT_INSTANCES_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/internal/sampling.h"
#include "config/plan.h"
#include "delivery/scraped.h"
#include "delivery/sink_window.h"
#include "plugin/plugin.h"

#define STOP_NS 10000000000u /* the time that a removed sink has to deliver */

/* A discovery instance of the plan. */
struct source {
	const struct plan_instance *plan;
	struct discovery *discovery;
};

struct instances {
	const struct plugin_folder *folder; /* these four are borrowed */
	const struct fusee_host *host;
	struct loop *loop;
	struct agent_sampling *sampling;
	/* Called with each profile before its sink receives it; NULL is fine. */
	void (*built)(void *arg, const struct plan_instance *, const struct fusee_profile *);
	void *arg;
	struct delivery_files files; /* of the sinks' deliveries */

	struct plan *plan;                           /* the running plan, owned; NULL: none yet */
	struct sink_window *windows[PLAN_MAX_SINKS]; /* of plan->sinks[i] */
	struct source *sources;                      /* of plan->discoveries[i] */
	uint32_t nsources;
	struct removed *removed; /* sinks of earlier plans */
	uint32_t generation;     /* number of plans so far, the running plan included */
};

/* Takes the plan over. First creates all its new instances, while the earlier plan runs; a failure
 * ends them again. Then the plan runs: instances of both plans continue, with their queues, and the
 * other instances of the earlier plan end. 0, or -errno: the earlier plan still runs, and *error is
 * a malloc'ed text with one sentence in each line, or NULL. */
int instances_set_plan(struct instances *, struct plan *, char **error);
/* Puts a profile into the deliveries of the plan's sinks, but of those with default = false.
 * instances: struct instances. */
void instances_deliver(void *instances, struct scraped *);
/* Closes all open windows now. */
void instances_close_windows(struct instances *);
/* No closed window of a sink of the plan that ended by until_ns (CLOCK_MONOTONIC) waits for
 * symbols. */
bool instances_are_idle(const struct instances *, uint64_t until_ns);
/* Stops the sinks of the plan: they have until deadline_ns (CLOCK_MONOTONIC). */
void instances_stop(struct instances *, uint64_t deadline_ns);
bool instances_have_ended(const struct instances *); /* all windows and deliveries of the plan */
/* Once a second: frees removed sinks that have ended, and then their plans. */
void instances_tidy(struct instances *);
void instances_sweep(struct instances *, bool names); /* agent_sampling_sweep() */
/* Frees all sinks, waits for their deliveries, and frees the plans. */
void instances_fini(struct instances *);
/* The labels of a label set, for struct build_options. arg: the agent's sampling. */
const struct fusee_label *instances_labels_of(void *arg, uint32_t set, uint32_t *n);
/* The period of the plan's sampler, in its unit; 0: it has none. */
struct wait_periods instances_chosen_periods(const struct plan *);
#endif

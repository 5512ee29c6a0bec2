/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls the callbacks of the running plan's script when they are due, with a view of the targets. A
 * callback that fails three times in a row is called less often: after each failure half as often,
 * down to once in five minutes. For the control thread.
 */
#ifndef AGENT_CALLBACKS_H
#define AGENT_CALLBACKS_H

#include <stdint.h>

#include "agent/internal/instances.h"
#include "base/hashmap.h"
#include "config/plan.h"

struct callback_state {
	uint64_t due_ns, called_ns; /* CLOCK_MONOTONIC */
	uint32_t failures;          /* in a row */
	char *said;                 /* the last failure that was logged; NULL: none */
	struct hashmap cpu;         /* by decision: 1 + its cpu_ns at the previous call */
};

struct callbacks {
	struct instances *instances; /* borrowed */
	uint32_t generation;         /* of the plan that the states belong to */
	struct callback_state states[PLAN_MAX_CALLBACKS];
	/* By sinks of the plan: the end of the profile that a callback has requested,
	 * CLOCK_MONOTONIC; 0: none. */
	uint64_t profile_until_ns[PLAN_MAX_SINKS];
};

/* Once a second. now_ns: CLOCK_MONOTONIC. */
void callbacks_run_due(struct callbacks *, uint64_t now_ns);
/* Calls the callbacks of on("profile"). arg: the struct callbacks. */
void callbacks_built(void *arg, const struct plan_instance *, const struct fusee_profile *);
void callbacks_fini(struct callbacks *);
#endif

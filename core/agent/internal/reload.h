/* SPDX-License-Identifier: Apache-2.0 */
/* Reloads: a new plan is made and replaces the running plan. For the control thread. */
#ifndef AGENT_RELOAD_H
#define AGENT_RELOAD_H

#include <stdbool.h>

#include "agent/agent.h"
#include "agent/internal/instances.h"

struct reload {
	const struct agent_options *options; /* borrowed, both */
	struct instances *instances;
	bool failed; /* the last reload */
	char *error; /* its text, or NULL: no memory for it; NULL after a success */
};

/* Notifies the service manager, makes a plan and sets it; logs the result. 0 or -errno; the text of
 * the error is reload_error(). */
int reload_run(struct reload *);
/* Why the last reload failed; NULL: it did not. */
const char *reload_error(const struct reload *);
void reload_fini(struct reload *);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The agent of `fusee run`: profiles processes as its plan says, until a signal ends it. */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include <stdint.h>

#include "config/plan.h"
#include "plugin/plugin.h"

struct agent_options {
	/* Makes the plan, at the start and at each reload; returns as plan_from_script(). */
	int (*plan)(void *arg, const struct plugin_folder *, struct plan **, struct plan_errors *);
	void *arg;
	const char *plugin_dir;
	const char *cache_dir; /* unwind tables on disk; NULL: none are kept */
	uint64_t duration_ns;  /* the agent ends after it; 0: only a signal ends it */
};

/* Runs the agent. 0, or an exit code of sysexits.h after an error was logged. */
int agent_run(const struct agent_options *);
#endif

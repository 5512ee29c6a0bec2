/* SPDX-License-Identifier: Apache-2.0 */
/* The agent: a plan at work, until a signal ends it. */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include <stdint.h>

#include "config/plan.h"
#include "plugin/plugin.h"

struct agent_options {
	/* Makes the plan: at the start, and anew at each reload. As plan_from_script(). */
	int (*plan)(void *arg, const struct plugin_folder *, struct plan **, struct plan_errors *);
	void *arg;
	const char *plugin_dir;
	const char *cache_dir; /* of unwind tables; NULL: none */
	uint64_t duration_ns;  /* 0: until a signal */
};

/* Runs it. What goes wrong is logged. 0 or an exit code of sysexits.h. */
int agent_run(const struct agent_options *);
#endif

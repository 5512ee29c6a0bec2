/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a plan from flags of the command line. */
#ifndef CONFIG_FLAGS_H
#define CONFIG_FLAGS_H

#include <stdbool.h>

#include "config/plan.h"

/* Sinks "pprof:dir=/var/lib/fusee,every=60s" or "http:url=http://x:4040", discoveries "cgroup". An
 * item that does not begin with an option of the plugin continues the list or map before it
 * ("omit=pid,tid"); "\," is a comma in a value. */
struct plan_flags {
	const char *const *sinks, *const *discoveries;
	const char *const *unwinders; /* "python:native=true" */
	uint32_t nsinks, ndiscoveries, nunwinders;
	bool no_sinks;       /* the plan may have no sinks */
	double hz;           /* 0: default */
	const char *listen;  /* NULL: default */
	bool pull;           /* profiles are pulled at `listen` */
	const char *control; /* NULL: default */
};

/* Checks the flags against the folder's plugins; starts nothing. Returns as plan_from_script(). */
int plan_from_flags(struct plan **ret, const struct plan_flags *, const struct plugin_folder *,
		    struct plan_errors *errors);
#endif

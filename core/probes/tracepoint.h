/* SPDX-License-Identifier: Apache-2.0 */
/* Raw tracepoints of the running kernel. For one thread. */
#ifndef PROBES_TRACEPOINT_H
#define PROBES_TRACEPOINT_H

#include <stdint.h>

#include "symbols/probe_points.h"

/* Adds the tracepoint, whether or not the kernel has it. 0; -EINVAL: there are too many, with a
 * sentence in *why, malloc'ed or NULL; -ENOMEM. */
int tracepoint_find(struct probe_points *, const char *name, const struct probe_filter *,
		    char **why);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The plan's debuginfod servers. For the control thread. */
#ifndef AGENT_SYMBOL_SERVERS_H
#define AGENT_SYMBOL_SERVERS_H

#include "config/plan.h"
#include "profiler/profiler.h"

/* Sets the plan's servers of debug files, or none. Logs why they cannot be used. */
void symbol_servers_set(struct profiler *, const struct plan *);
#endif

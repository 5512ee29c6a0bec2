/* SPDX-License-Identifier: Apache-2.0 */
/* The plan's debuginfod servers. For the control thread. */
#ifndef AGENT_SYMBOL_SERVERS_H
#define AGENT_SYMBOL_SERVERS_H

#include "config/plan.h"
#include "profiler/profiler.h"

/* From now on debug files come from the plan's servers, or from none. What stands in the way is
 * logged. */
void symbol_servers_set(struct profiler *, const struct plan *);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Why a process has its labels and its decision, as JSON. For the control thread. */
#ifndef AGENT_EXPLAIN_H
#define AGENT_EXPLAIN_H

#include <sys/types.h>

#include "base/buf.h"

struct agent;

/* Appends the members of the answer to `explain`: docs/internals/agent.md. 0; -ESRCH: there is no
 * such process, or it is not known yet; -ENOMEM. */
int explain_json(const struct agent *, pid_t, struct buf *);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of relabeling and decisions: a target that a sink's rules drop is not sampled for that
 * sink. The sink's windows apply the rules to labels: delivery/window_labels.c. */
#ifndef AGENT_RELABELING_H
#define AGENT_RELABELING_H

#include "lua/policy.h"
#include "config/plan.h"

/* Removes from answer->sinks those sinks whose rules drop the target: its labels, together with
 * those of the answer. counted: adds to fusee_relabel_dropped_total. */
void relabeling_decide(const struct plan *, const struct fusee_label *, uint32_t n,
		       struct policy_answer *answer, bool counted);
/* Appends a member "relabel": [{"sink": .., "dropped": .., "by": .., "labels": {..}}, ..] with the
 * labels that the sinks' rules make; nothing if no sink has rules. */
void relabeling_json(const struct plan *, const struct fusee_label *, uint32_t n, struct json *);
#endif

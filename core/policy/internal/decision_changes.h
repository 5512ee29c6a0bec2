/* SPDX-License-Identifier: Apache-2.0 */
/* Changes that a callback of the script makes to a decision: its rate or sinks, or whether it is
 * profiled, for a time; its labels. A changed decision is marked; decisions_apply() reports it for
 * its processes. For the control thread. */
#ifndef POLICY_DECISION_CHANGES_H
#define POLICY_DECISION_CHANGES_H

#include "policy/internal/decision_cache.h"

/* All return 0; -ENOENT: there is no such decision; -ENOMEM; or as below. Times are
 * CLOCK_MONOTONIC. */

/* Sets the rate until until_ns; replaces an earlier such rate. -EACCES: the policy refuses the
 * target. */
int decision_set_rate(struct decision_cache *, uint32_t set, bool known, double hz,
		      uint64_t until_ns);
/* Stops profiling until until_ns. */
int decision_drop(struct decision_cache *, uint32_t set, bool known, uint64_t until_ns);
/* Adds sinks until until_ns; replaces earlier such sinks. -EACCES as above. */
int decision_add_sinks(struct decision_cache *, uint32_t set, bool known, uint64_t sinks,
		       uint64_t until_ns);
/* Adds a label, or replaces that of the same name. -ENOSPC: it has DECISION_LABELS labels. */
int decision_add_label(struct decision_cache *, uint32_t set, bool known,
		       const struct fusee_label *);
/* Updates all decisions and marks those that differ. Returns whether there are any. */
bool decision_changes_refresh(struct decision_cache *, uint64_t now_ns);
#endif

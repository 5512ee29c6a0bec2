/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the discoveries of a plan until each has committed once, for commands that need the current
 * targets. One thread. */
#ifndef POLICY_DISCOVER_ONCE_H
#define POLICY_DISCOVER_ONCE_H

#include <stdint.h>

#include "config/plan.h"
#include "target/target.h"

struct discover_once;

/* Makes the plan's discoveries, whose targets are put into `targets`; their sources are numbered in
 * the order of the plan. Waits at most wait_ns until each has committed; discoveries that fail or
 * have not committed by then are logged, and their targets so far count. Plan and targets are
 * borrowed until discover_once_free(). 0 or -errno. */
int discover_once_new(struct discover_once **ret, const struct plan *, struct targets *,
		      uint64_t wait_ns);
/* Ends the instances, and removes their targets. NULL is fine. */
void discover_once_free(struct discover_once *);
/* Discoveries that could not be started, or had not committed in time. */
uint32_t discover_once_failed(const struct discover_once *);
#endif

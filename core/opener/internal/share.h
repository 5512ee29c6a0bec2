/* SPDX-License-Identifier: Apache-2.0 */
/* How long queries may wait in one second: all queries together, and those for the processes of one
 * user. For opener.c. */
#ifndef OPENER_SHARE_H
#define OPENER_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#define OPENER_SHARE_USERS 16u /* users with a sum of their own; others count in the sum of all */

struct opener_share {
	uint64_t second; /* the current second, CLOCK_MONOTONIC */
	uint64_t waited; /* ns that all queries have waited in it */
	struct {
		uint32_t uid;
		uint64_t ns; /* that the user's queries have waited in it; 0: a free place */
	} users[OPENER_SHARE_USERS];
};

/* Clears the sums if `now` (CLOCK_MONOTONIC ns) is in another second. Whether any query has waited
 * in this second; if not, the next query's user need not be looked up. */
bool opener_share_is_touched(struct opener_share *, uint64_t now);
/* Whether the user's queries, or all, have waited for too long in this second. For root only the
 * sum of all is limited. */
bool opener_share_is_used_up(const struct opener_share *, uint32_t uid);
/* Adds the time that a query of the user has waited. */
void opener_share_add(struct opener_share *, uint32_t uid, uint64_t ns);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* How long queries may wait in a second, those of a user and all. Part of opener.c. */
#ifndef OPENER_SHARE_H
#define OPENER_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#define OPENER_SHARE_USERS 16u /* whose waiting is known; that of others counts for all alone */

struct opener_share {
	uint64_t second; /* the current one */
	uint64_t waited; /* in it, ns */
	struct {
		uint32_t uid;
		uint64_t ns; /* 0: none */
	} users[OPENER_SHARE_USERS];
};

/* Has any query waited in the second of `now` (CLOCK_MONOTONIC ns)? Then its user counts. */
bool opener_share_is_touched(struct opener_share *, uint64_t now);
/* Have the user's queries, or all, waited for too long in that second? Root's count for all alone.
 */
bool opener_share_is_used_up(const struct opener_share *, uint32_t uid);
/* A query of the user waited for so long. */
void opener_share_add(struct opener_share *, uint32_t uid, uint64_t ns);
#endif

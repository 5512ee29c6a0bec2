/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits memory that users' processes can make grow. A user may get more while the user's sum is
 * less than half of the free bytes, root while its sum is less than the free bytes: so others
 * always find room. A user alone gets a third of the limit, root half. For one thread.
 */
#ifndef BASE_USER_BUDGET_H
#define BASE_USER_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hashmap.h"

struct user_budget {
	uint64_t most;        /* bytes; 0: no limit */
	uint64_t bytes;       /* of all */
	struct hashmap users; /* bytes of a user, as the pointer's value */
};

void user_budget_fini(struct user_budget *); /* {0} is valid */
/* The limit less the bytes of all users; 0 without a limit. */
uint64_t user_budget_free(const struct user_budget *);
/* Whether the user may get more. */
bool user_budget_has_room(const struct user_budget *, uint32_t uid);
/* Adds bytes to the user's sum: 0 or -ENOMEM. A negative number takes bytes off that were added
 * before, which never fails. */
int user_budget_add(struct user_budget *, uint32_t uid, int64_t bytes);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that any user can make grow, with a limit in all. A user may have more while that user has
 * less than half of what is free, root while it has less than all of that: so there is room for
 * others, whatever these do. Alone a user has a third of the limit, and root half. For one thread.
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
/* Bytes that no user has; 0 without a limit. */
uint64_t user_budget_free(const struct user_budget *);
/* May the user have more? */
bool user_budget_has_room(const struct user_budget *, uint32_t uid);
/* The user has as many bytes more; 0 or -ENOMEM. Or less, of those that were added: never fails. */
int user_budget_add(struct user_budget *, uint32_t uid, int64_t bytes);
#endif

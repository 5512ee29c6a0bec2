/* SPDX-License-Identifier: Apache-2.0 */
#include "base/user_budget.h"

#include <errno.h>

static uint64_t bytes_of(const struct user_budget *b, uint32_t uid)
{
	return (uint64_t)(uintptr_t)hashmap_get(&b->users, uid);
}

void user_budget_fini(struct user_budget *b)
{
	hashmap_fini(&b->users);
}

uint64_t user_budget_free(const struct user_budget *b)
{
	return b->bytes < b->most ? b->most - b->bytes : 0;
}

bool user_budget_has_room(const struct user_budget *b, uint32_t uid)
{
	uint64_t free = user_budget_free(b);

	return !b->most || bytes_of(b, uid) < (uid ? free / 2 : free);
}

int user_budget_add(struct user_budget *b, uint32_t uid, int64_t bytes)
{
	uint64_t sum = bytes_of(b, uid) + (uint64_t)bytes;

	if (!sum)
		hashmap_del(&b->users, uid);
	else if (hashmap_put(&b->users, uid, (void *)(uintptr_t)sum)) /* of a new user */
		return -ENOMEM;
	b->bytes += (uint64_t)bytes;
	return 0;
}

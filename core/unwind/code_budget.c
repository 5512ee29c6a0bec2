/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/code_budget.h"

#include <errno.h>

#include "base/metrics.h"

static uint64_t bytes_of(const struct code_budget *b, uint32_t uid)
{
	return (uint64_t)(uintptr_t)hashmap_get(&b->users, uid);
}

static uint64_t room_of_user(const struct code_budget *b, uint32_t uid)
{
	uint64_t free = b->bytes < b->most ? b->most - b->bytes : 0;

	return uid ? free / 2 : free;
}

bool code_budget_has_room(const struct code_budget *b, uint32_t uid, uint64_t of_process,
			  const char *what)
{
	uint64_t free = b->bytes < b->most ? b->most - b->bytes : 0;
	const char *whose = of_process >= free / 4                     ? "of the process"
			    : bytes_of(b, uid) >= room_of_user(b, uid) ? "of the user"
								       : NULL;

	if (!b->most || !whose)
		return true;
	metric_add(
		"code_refused_total",
		"Total number of emissions, claims and words of unwinders that were not kept, as "
		"there were too many.",
		METRIC_LABELS("limit", whose, "what", what), 1);
	return false;
}

int code_budget_add(struct code_budget *b, uint32_t uid, int64_t bytes)
{
	uint64_t sum = bytes_of(b, uid) + (uint64_t)bytes;

	if (!sum)
		hashmap_del(&b->users, uid);
	else if (hashmap_put(&b->users, uid, (void *)(uintptr_t)sum)) /* of a new user */
		return -ENOMEM;
	b->bytes += (uint64_t)bytes;
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/internal/code_budget.h"

#include "base/metrics.h"

bool code_budget_has_room(const struct user_budget *b, uint32_t uid, uint64_t of_process,
			  const char *what)
{
	const char *whose = of_process >= user_budget_free(b) / 4 ? "of the process"
			    : !user_budget_has_room(b, uid)       ? "of the user"
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for what is known of code that is not in files: claims, words and emissions. Any user can
 * run programs with ever new functions. A process may have more while it has less than a quarter of
 * what is free, and its user may (base/user_budget.h). For one thread.
 */
#ifndef UNWIND_CODE_BUDGET_H
#define UNWIND_CODE_BUDGET_H

#include "base/user_budget.h"

/* May a process of this user, which has so many bytes, have more? A refusal is counted as a metric.
 * what: "emission", "claim", "words". */
bool code_budget_has_room(const struct user_budget *, uint32_t uid, uint64_t of_process,
			  const char *what);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for what is known of code that is not in files: claims, words and emissions. Any user can
 * run programs with ever new functions. A process may have more while it has less than a quarter of
 * what is free, and a user while the processes of that user have less than half of it, those of
 * root less than all of it: so there is room for others, whatever these do. For one thread.
 */
#ifndef UNWIND_CODE_BUDGET_H
#define UNWIND_CODE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hashmap.h"

struct code_budget {
	uint64_t most;        /* bytes; 0: no limit */
	uint64_t bytes;       /* of all */
	struct hashmap users; /* bytes of a user, as the pointer's value */
};

/* May a process of this user, which has so many bytes, have more? A refusal is counted as a metric.
 * what: "emission", "claim", "words". */
bool code_budget_has_room(const struct code_budget *, uint32_t uid, uint64_t of_process,
			  const char *what);
/* The user has as many bytes more; 0 or -ENOMEM. Or less, of those that were added. */
int code_budget_add(struct code_budget *, uint32_t uid, int64_t bytes);
#endif

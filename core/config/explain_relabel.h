/* SPDX-License-Identifier: Apache-2.0 */
/* What each rule of relabeling does to a process's labels, as JSON. For the control thread. */
#ifndef CONFIG_EXPLAIN_RELABEL_H
#define CONFIG_EXPLAIN_RELABEL_H

#include "config/plan.h"

/* Appends a member "relabel": [{"sink": .., "rules": [{"rule": "fusee.lua:12, rule 3", "does": "app
 * = shop, without user"}, ..]}, ..]: for each sink with rules, those rules that change the labels
 * or drop the target. Appends nothing if no sink has rules. */
void explain_relabel(const struct plan *, const struct fusee_label *, uint32_t n, struct json *);
#endif

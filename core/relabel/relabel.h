/* SPDX-License-Identifier: Apache-2.0 */
/* Rules applied to the labels of a target, with the results of Prometheus' package relabel. A label
 * with an empty value is no label. */
#ifndef RELABEL_RELABEL_H
#define RELABEL_RELABEL_H

#include <stdint.h>

#include "relabel/rules.h"

#define RELABEL_LABELS 64u /* most labels of a result */

enum relabel_fate {
	RELABEL_KEPT,
	RELABEL_DROPPED, /* by the rule */
	RELABEL_LIMIT,   /* dropped: the rule's regex needed more steps than a match may take */
};

struct relabeled {
	enum relabel_fate fate;
	const struct relabel_rules *list; /* of the rule that dropped it; NULL: kept. Borrowed. */
	uint32_t rule;                    /* its index in the list */
	uint32_t lost;                    /* labels beyond RELABEL_LABELS */
	uint32_t n;                       /* 0 unless kept */
	struct fusee_label labels[];      /* sorted by name; their texts follow */
};

/* Applies lists in their order; a NULL among them is an empty list. Owned by the caller, to be
 * freed by free(). 0 or -ENOMEM. */
int relabel_apply(const struct relabel_rules *const *lists, uint32_t nlists,
		  const struct fusee_label *, uint32_t n, struct relabeled **ret);
/* Why the target was dropped: the rule's action, "drop", "keep" .., or "match limit". NULL: it was
 * not dropped.
 */
const char *relabel_reason(const struct relabeled *);
/* Writes the name of the rule that dropped the target, "fusee.lua:12, rule 3", terminated. */
void relabel_rule_name(const struct relabeled *, char *text, size_t size);
#endif

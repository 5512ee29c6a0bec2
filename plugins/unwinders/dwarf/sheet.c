/* SPDX-License-Identifier: Apache-2.0 */
/* Combines the rows of several sources of unwind information. */
#include "rows.h"

void sheet_fini(struct sheet *s)
{
	rows_fini(&s->rules);
	rows_fini(&s->saves);
}

int sheet_add(struct sheet *all, struct sheet *more)
{
	int err = rows_fill(&all->rules, &more->rules);

	if (!err)
		err = rows_fill(&all->saves, &more->saves);
	sheet_fini(more);
	return err;
}

int sheet_add_rules(struct sheet *all, struct rows *rules)
{
	struct sheet more = {.rules = *rules};
	uint32_t last = DWARF_RULE_NONE;
	int err = 0;

	*rules = (struct rows){0};
	for (size_t i = 0; !err && i < more.rules.n; i++) {
		uint32_t pattern = ROW_RULE(more.rules.p[i]) == DWARF_RULE_NONE
					   ? 0
					   : DWARF_PATTERN_UNKNOWN;

		if (!i || pattern != last)
			err = rows_add(&more.saves, ROW_VADDR(more.rules.p[i]), pattern);
		last = pattern;
	}
	if (!err)
		return sheet_add(all, &more);
	sheet_fini(&more);
	return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions of any bytes, followed from the first and from where they point to. */
// sources: plugins/unwinders/dwarf/code/code.c plugins/unwinders/dwarf/code/state.c
//
// sources: plugins/unwinders/dwarf/code/state_back.c plugins/unwinders/dwarf/code/state_rule.c
//
// sources: plugins/unwinders/dwarf/code/entries.c plugins/unwinders/dwarf/code/switch.c
//
// sources: plugins/unwinders/dwarf/code/text.c plugins/unwinders/dwarf/code/back.c
//
// sources: plugins/unwinders/dwarf/code/calls.c plugins/unwinders/dwarf/code/labels.c
//
// sources: plugins/unwinders/dwarf/code/data.c
//
// sources: plugins/lib/insn/insn.c plugins/lib/insn/effect.c
//
// sources: plugins/unwinders/dwarf/rows.c plugins/unwinders/dwarf/sheet.c
#include "fuzz.h"

#include "../../plugins/unwinders/dwarf/code/code.h"

#define TEXT 0x1000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct code_entries sure = {0}, maybe = {0};
	struct rows none = {0}, rows = {0};
	/* tables are in the second half, as read-only data */
	struct code code = {data, len, TEXT, &none, {data + len / 2, len - len / 2, TEXT + len / 2},
			    {0},  {0}, 0};
	struct table_build build;

	if (table_build_init(&build) || code_entries_add(&sure, TEXT) ||
	    code_entries_add(&maybe, TEXT + 64) || code_read(&build, &code, &sure, &maybe, &rows))
		abort();
	for (size_t i = 1; i < rows.n; i++)
		if (ROW_VADDR(rows.p[i]) <= ROW_VADDR(rows.p[i - 1]))
			abort();
	code_entries_fini(&sure);
	code_entries_fini(&maybe);
	rows_fini(&rows);
	table_build_fini(&build);
	return 0;
}

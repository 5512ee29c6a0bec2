/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as code that was made at run time, entered where the first of them say. */
// sources: plugins/unwinders/dwarf/code/forward.c
//
// sources: plugins/lib/insn/insn.c plugins/lib/insn/effect.c
//
// sources: plugins/unwinders/dwarf/rows.c plugins/unwinders/dwarf/sheet.c
#include "fuzz.h"

#include "../../plugins/unwinders/dwarf/code/forward.h"

#define TEXT 0x7f0000001000u
#define STARTS 8u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct forward_code code = {.vaddr = TEXT};
	struct forward_start starts[STARTS];
	struct table_build build;
	struct rows rows = {0};
	struct forward *f;

	if (len < STARTS)
		return 0;
	code.bytes = data + STARTS;
	code.len = len - STARTS;
	for (size_t i = 0; i < STARTS; i++) /* some lie outside */
		starts[i] = (struct forward_start){TEXT - 1 + data[i], data[i] & 1};
	if (table_build_init(&build) || forward_new(&f, &code, starts, STARTS) ||
	    forward_rows(f, &build, &rows))
		abort();
	for (size_t i = 1; i < rows.n; i++)
		if (ROW_VADDR(rows.p[i]) <= ROW_VADDR(rows.p[i - 1]))
			abort();
	for (uint64_t at = 0; at < code.len; at++) {
		struct forward_proof p = forward_at(f, TEXT + at);

		if ((p.kind == FORWARD_BY_SP && p.cfa < 1) || p.kind > FORWARD_CONTRADICTION)
			abort();
	}
	forward_free(f);
	rows_fini(&rows);
	table_build_fini(&build);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions of any bytes, followed from the first one and from where they point to. */
// sources: plugins/unwinders/dwarf/code.c plugins/unwinders/dwarf/insn.c
//
// sources: plugins/unwinders/dwarf/rows.c
#include <stdlib.h>

#include "../../plugins/unwinders/dwarf/code.h"

#define TEXT 0x1000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct dwt_entries sure = {0}, maybe = {0};
	struct dwt_rows none = {0}, rows = {0};
	struct dwt_code code = {data, len, TEXT, &none};
	struct dwt dwt;

	if (dwt_init(&dwt) || dwt_entries_add(&sure, TEXT) || dwt_entries_add(&maybe, TEXT + 64) ||
	    dwt_code_read(&dwt, &code, &sure, &maybe, &rows))
		abort();
	for (size_t i = 1; i < rows.n; i++)
		if (DWT_VADDR(rows.p[i]) <= DWT_VADDR(rows.p[i - 1]))
			abort();
	dwt_entries_fini(&sure);
	dwt_entries_fini(&maybe);
	dwt_rows_fini(&rows);
	dwt_fini(&dwt);
	return 0;
}

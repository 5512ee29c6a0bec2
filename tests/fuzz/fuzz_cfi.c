/* SPDX-License-Identifier: Apache-2.0 */
/* Call frame information of any bytes: read, packed and looked up. The first byte chooses
 * .debug_frame. */
// sources: plugins/unwinders/dwarf/cfi.c plugins/unwinders/dwarf/x86_64.c
//
// sources: plugins/unwinders/dwarf/rows.c
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../plugins/unwinders/dwarf/cfi.h"

#define BASE (1ull << 30)
#define AROUND (1ull << 24)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* A lookup must find what a walk over the list finds. */
static void check(const struct dwt *dwt, const struct dwt_rows *rows)
{
	const uint32_t *special;
	uint32_t *words;
	uint64_t n;

	for (size_t i = 1; i < rows->n; i++)
		if (DWT_VADDR(rows->p[i]) <= DWT_VADDR(rows->p[i - 1]))
			abort();
	if (dwt_pack(dwt, rows, 62, &words, &n))
		return;
	for (size_t i = 0; i < rows->n; i++) {
		uint64_t at = DWT_VADDR(rows->p[i]);
		uint32_t rule = dwt_lookup(words, n, at, &special);

		if (rule != DWT_RULE(rows->p[i]) && rule != DWT_RULE_EXPRESSION)
			abort();
		if (!dwt_in_text(dwt, at, at + 1) && DWT_RULE(rows->p[i]) != DWARF_RULE_NONE)
			abort();
	}
	free(words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct dwt_rows rows = {0};
	struct dwt_section s;
	struct dwt dwt;
	int err;

	if (!len)
		return 0;
	s = (struct dwt_section){data + 1, len - 1, BASE, data[0] & 1};
	if (dwt_init(&dwt))
		abort();
	dwt.n_texts = 1;
	dwt.text[0].lo = BASE - AROUND;
	dwt.text[0].hi = BASE + AROUND;
	err = dwt_cfi_read(&dwt, &s, &rows);
	if (!err || err == -EBADMSG)
		check(&dwt, &rows);
	dwt_rows_fini(&rows);
	dwt_fini(&dwt);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Go's function table of any bytes. The last 4 KiB of the input, if it has that much, are the code.
 */
// sources: plugins/unwinders/dwarf/cfi.c plugins/unwinders/dwarf/x86_64.c
//
// sources: plugins/unwinders/dwarf/rows.c plugins/unwinders/dwarf/gopclntab.c
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../plugins/unwinders/dwarf/cfi.h"
#include "../../plugins/unwinders/dwarf/gopclntab.h"

#define TEXT 0x401000ull
#define CODE 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void read_all(struct dwt_go *go)
{
	struct dwt_rows rows = {0};
	struct dwt dwt;
	uint32_t *words;
	uint64_t n;

	if (dwt_init(&dwt))
		abort();
	dwt.n_texts = 1;
	dwt.text[0].lo = TEXT;
	dwt.text[0].hi = TEXT + (1 << 24);
	if (!dwt_go_read(&dwt, go, &rows)) {
		for (size_t i = 1; i < rows.n; i++)
			if (DWT_VADDR(rows.p[i]) <= DWT_VADDR(rows.p[i - 1]))
				abort();
		if (!dwt_pack(&dwt, &rows, 62, &words, &n))
			free(words);
	}
	dwt_rows_fini(&rows);
	dwt_fini(&dwt);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	size_t code = len > 2 * CODE ? CODE : len / 4;
	struct dwt_go go;

	if (dwt_go_open(&go, data, len - code))
		return 0;
	if (!go.text)
		go.text = TEXT;
	go.code = data + len - code;
	go.code_len = code;
	go.code_vaddr = TEXT;
	read_all(&go);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Go's function table of any bytes. The last 4 KiB of the input, if it has that much, are the code.
 */
// sources: plugins/unwinders/dwarf/cursor.c
//
// sources: plugins/unwinders/dwarf/rows.c plugins/unwinders/dwarf/sheet.c
//
// sources: plugins/lib/gotable/table.c plugins/lib/gotable/places.c
//
// sources: plugins/unwinders/dwarf/go/gorows.c plugins/unwinders/dwarf/go/gostack.c
#include "fuzz.h"

#include "../../plugins/unwinders/dwarf/go/gorows.h"

#define TEXT 0x401000ull
#define CODE 4096

static void read_all(struct fusee_go_table *go)
{
	struct sheet sheet = {0};
	struct rows *rows = &sheet.rules;
	struct table_build build;
	uint32_t *words;
	uint64_t n;

	if (table_build_init(&build))
		abort();
	build.n_texts = 1;
	build.text[0].lo = TEXT;
	build.text[0].hi = TEXT + (1 << 24);
	if (!go_read(&build, go, rows)) {
		for (size_t i = 1; i < rows->n; i++)
			if (ROW_VADDR(rows->p[i]) <= ROW_VADDR(rows->p[i - 1]))
				abort();
		if (!table_pack(&build, &sheet, 62, &words, &n))
			free(words);
	}
	sheet_fini(&sheet);
	table_build_fini(&build);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	size_t code = len > 2 * CODE ? CODE : len / 4;
	struct fusee_go_table go;

	if (fusee_go_open(&go, data, len - code))
		return 0;
	if (!go.text)
		go.text = TEXT;
	go.code = data + len - code;
	go.code_len = code;
	go.code_vaddr = TEXT;
	read_all(&go);
	return 0;
}

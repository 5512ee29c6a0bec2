/* SPDX-License-Identifier: Apache-2.0 */
/* Call frame information of any bytes: read, packed and looked up. The first byte chooses
 * .debug_frame. */
// sources: plugins/unwinders/dwarf/cfi/cfi.c plugins/unwinders/dwarf/cfi/program.c
//
// sources: plugins/unwinders/dwarf/cursor.c plugins/unwinders/dwarf/cfi/x86_64.c
//
// sources: plugins/unwinders/dwarf/rows.c plugins/unwinders/dwarf/sheet.c
#include "fuzz.h"

#include "../../plugins/unwinders/dwarf/cfi/cfi.h"

#define BASE (1ull << 30)
#define AROUND (1ull << 24)

/* A lookup must find what a walk over the list finds. */
static void check(const struct table_build *build, struct sheet *sheet)
{
	const struct rows *rows = &sheet->rules, *saves = &sheet->saves;
	const uint32_t *special;
	uint32_t *words;
	uint64_t n;

	for (size_t i = 1; i < rows->n; i++)
		if (ROW_VADDR(rows->p[i]) <= ROW_VADDR(rows->p[i - 1]))
			abort();
	if (table_pack(build, sheet, 62, &words, &n))
		return;
	for (size_t i = 0; i < rows->n; i++) {
		uint64_t at = ROW_VADDR(rows->p[i]);
		uint32_t rule = table_lookup(words, n, at, &special);

		if (rule != ROW_RULE(rows->p[i]) && rule != DWARF_RULE_EXPRESSION)
			abort();
		if (!table_in_text(build, at, at + 1) && ROW_RULE(rows->p[i]) != DWARF_RULE_NONE)
			abort();
	}
	for (size_t i = 0; i < saves->n; i++) {
		const uint32_t *pattern = build->patterns.p[ROW_RULE(saves->p[i]) - 1];
		const uint32_t *found = table_saves(words, n, ROW_VADDR(saves->p[i]));

		if (i && ROW_VADDR(saves->p[i]) <= ROW_VADDR(saves->p[i - 1]))
			abort();
		if (!found ||
		    (memcmp(found, pattern, DWARF_PATTERN_WORDS * 4) && found[0] != 0x01010101))
			abort();
	}
	free(words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct sheet sheet = {0};
	struct cfi_section s;
	struct table_build build;
	int err;

	if (!len)
		return 0;
	s = (struct cfi_section){data + 1, len - 1, BASE, data[0] & 1};
	if (table_build_init(&build))
		abort();
	build.n_texts = 1;
	build.text[0].lo = BASE - AROUND;
	build.text[0].hi = BASE + AROUND;
	err = cfi_read(&build, &s, &sheet);
	if (!err || err == -EBADMSG)
		check(&build, &sheet);
	sheet_fini(&sheet);
	table_build_fini(&build);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
// sources: core/process/elf.c core/process/elf_note.c core/process/elf_section.c core/base/pread.c
// sources: core/process/elf_symbol.c core/base/holes.c
// libs: -lz -lzstd
// An ELF file of any bytes: all that the reader answers lies where it says, and every byte of it
// can be read.
#include "fuzz.h"

#include "process/elf.h"

static void ask(struct elf *e)
{
	static const char *const names[] = {
		".eh_frame", ".eh_frame_hdr",  ".debug_frame", ".gopclntab",
		".symtab",   ".gnu_debugdata", ".text",        "",
		".dynsym"};
	struct fusee_file_info info;
	struct fusee_str headers[3];
	struct fusee_section s;
	struct fusee_range at;
	bool imports;
	const char *name;
	uint32_t crc;
	char buf[64];

	if (elf_info(e, &info))
		abort(); /* only without memory */
	touch(info.build_id.p, info.build_id.len);
	for (uint32_t i = 0; i < info.segments.n; i++) {
		const struct fusee_segment *g = FUSEE_AT(struct fusee_segment, info.segments, i);

		if (g->filesz > g->memsz || g->vaddr + g->memsz < g->vaddr ||
		    (i && g->vaddr < g[-1].vaddr))
			abort();
		elf_read(e, g->vaddr + g->filesz / 2, buf, sizeof(buf));
	}
	elf_headers(e, headers);
	for (int i = 0; i < 3; i++)
		touch(headers[i].p, headers[i].len);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!elf_section(e, names[i], &s))
			touch(s.bytes.p, s.bytes.len);
	elf_symbol(e, "main", &at);
	elf_imports(e, (const char *const[]){"main", "fork", NULL}, &imports);
	if (!elf_debuglink(e, &name, &crc))
		touch(name, strlen(name));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = file_of(data, size);
	struct elf *e;

	if (!elf_open(&e, fd)) {
		ask(e);
		elf_close(e);
	}
	close(fd);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
// clang-format off
// sources: core/symbols/symbols.c core/symbols/compiler.c core/symbols/source.c core/base/holes.c core/process/elf_note.c core/symbols/symtab.c core/symbols/plt.c core/symbols/fde.c core/base/ranges.c core/symbols/debuglink.c core/demangle/demangle.c core/demangle/dlang.c core/symbols/dwarf.c core/symbols/dwarf_image.c core/symbols/dwarf_name.c core/symbols/dwarf_unit.c core/symbols/gopclntab.c core/symbols/gomodule.c core/base/utf8.c core/base/buf.c core/base/arena.c core/base/dict.c core/symbols/frames.c core/base/pread.c
// libs: -ldw -lelf -lz -lzstd -llzma -liberty
// clang-format on
// A complete ELF file, as its own debug file and dwz file too; every text that comes out is clean
// UTF-8.
#include "fuzz.h"
#include <elf.h>

#include "symbols/compiler.h"
#include "symbols/internal/source.h"
#include "symbols/symbols.h"
#include "base/utf8.h"

static void each(void *arg, const struct symbols_frame *f)
{
	uint32_t *n = arg;

	if (!utf8_printable(f->name, strlen(f->name)) ||
	    !utf8_printable(f->file, strlen(f->file)) ||
	    !utf8_printable(f->system_name, strlen(f->system_name)) || !*f->name)
		abort();
	++*n;
}

static void look(struct symbols *s, uint64_t addr)
{
	uint32_t n = 0;

	if (symbols_lookup(s, addr, each, &n) || !n)
		abort();
}

static void compiler(int fd)
{
	struct source *s;
	struct buf b = {0};

	if (source_open(&s, fd))
		return;
	if (compiler_of(s, &b) ? b.len
			       : !b.len || b.len > COMPILER_MAX || !utf8_printable(b.p, b.len))
		abort();
	buf_fini(&b);
	source_close(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = file_of(data, size);
	struct symbols_files files = {fd, fd, fd};
	struct symbols_quality q;
	struct symbols *s;
	uint64_t entry = 0;

	if (size >= sizeof(Elf64_Ehdr))
		memcpy(&entry, data + offsetof(Elf64_Ehdr, e_entry), 8);
	if (!symbols_open(&s, &files, true)) {
		for (uint64_t at = 0; at < 0x3000; at += 61)
			look(s, (entry & ~0xfffull) + at);
		look(s, 0);
		look(s, UINT64_MAX);
		symbols_quality(s, &q);
		symbols_close(s);
	}
	compiler(fd);
	close(fd);
	return 0;
}

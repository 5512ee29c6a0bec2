// SPDX-License-Identifier: Apache-2.0
// clang-format off
// sources: core/symbols/gopclntab.c core/symbols/gomodule.c core/symbols/source.c core/base/holes.c core/process/elf_note.c core/base/pread.c
// libs: -lelf -lz -lzstd
// clang-format on
// The input is the .gopclntab of a small ELF file, and its writable data too.
#include "fuzz.h"
#include <elf.h>

#include "symbols/internal/gopclntab.h"
#include "symbols/internal/source.h"

#define TEXT 0x401000
#define TABLE 0x500000

static void each(void *arg, const struct symbols_frame *f)
{
	size_t *bytes = arg;

	*bytes += strlen(f->name) + strlen(f->file);
}

static char *make_file(const uint8_t *table, size_t len, size_t *total)
{
	static const char names[] = "\0.text\0.gopclntab\0.shstrtab\0.data.rel.ro\0.go.buildinfo";
	size_t at = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr);
	size_t strings = (at + len + 7) & ~7ul, headers = (strings + sizeof(names) + 7) & ~7ul;
	char *p = calloc(1, headers + 5 * sizeof(Elf64_Shdr));
	Elf64_Shdr *h = (void *)(p + headers);

	if (!p)
		abort();
	*(Elf64_Ehdr *)p = (Elf64_Ehdr){.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
						    ELFDATA2LSB, EV_CURRENT},
					.e_type = ET_EXEC,
					.e_machine = EM_X86_64,
					.e_version = EV_CURRENT,
					.e_phoff = sizeof(Elf64_Ehdr),
					.e_phentsize = sizeof(Elf64_Phdr),
					.e_phnum = 1,
					.e_shoff = headers,
					.e_shentsize = sizeof(Elf64_Shdr),
					.e_shnum = 5,
					.e_shstrndx = 3,
					.e_ehsize = sizeof(Elf64_Ehdr)};
	*(Elf64_Phdr *)(p + sizeof(Elf64_Ehdr)) = (Elf64_Phdr){
		.p_type = PT_LOAD, .p_flags = PF_X | PF_R, .p_vaddr = TEXT, .p_memsz = 0x10000};
	memcpy(p + at, table, len);
	memcpy(p + strings, names, sizeof(names));
	h[1] = (Elf64_Shdr){.sh_name = 1,
			    .sh_type = SHT_NOBITS,
			    .sh_addr = TEXT,
			    .sh_size = 0x10000,
			    .sh_flags = SHF_ALLOC | SHF_EXECINSTR};
	h[2] = (Elf64_Shdr){.sh_name = 7,
			    .sh_type = SHT_PROGBITS,
			    .sh_addr = TABLE,
			    .sh_offset = at,
			    .sh_size = len,
			    .sh_flags = SHF_ALLOC};
	h[3] = (Elf64_Shdr){.sh_name = 18,
			    .sh_type = SHT_STRTAB,
			    .sh_offset = strings,
			    .sh_size = sizeof(names)};
	/* the same bytes as writable data: a moduledata may be found in them */
	h[4] = (Elf64_Shdr){.sh_name = 28,
			    .sh_type = SHT_PROGBITS,
			    .sh_addr = 2 * TABLE,
			    .sh_offset = at,
			    .sh_size = len,
			    .sh_flags = SHF_ALLOC | SHF_WRITE};
	*total = headers + 5 * sizeof(Elf64_Shdr);
	return p;
}

static void look_up(const struct gopclntab *t, uint64_t addr)
{
	struct symbols_span span = {.hi = UINT64_MAX};
	size_t bytes = 0;

	gopclntab_lookup(t, addr, each, &bytes, &span);
	if (addr < UINT64_MAX && (addr < span.lo || addr >= span.hi))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gopclntab *t;
	struct source *src;
	size_t len;
	char *file = make_file(data, size, &len);

	if (!source_open_memory(&src, file, len)) {
		if (!gopclntab_open(&t, src)) {
			for (uint64_t addr = TEXT; addr < TEXT + 0x1000; addr += 37)
				look_up(t, addr);
			look_up(t, 0);
			look_up(t, UINT64_MAX);
			gopclntab_close(t);
		}
		source_close(src);
	}
	free(file);
	return 0;
}

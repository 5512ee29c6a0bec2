/* SPDX-License-Identifier: Apache-2.0 */
/* What elf.c (headers), elf_section.c (contents) and elf_symbol.c (symbols) share. elf_symbol.c
 * calls elf_section.c, which calls elf.c. */
#ifndef PROCESS_ELF_INTERNAL_H
#define PROCESS_ELF_INTERNAL_H

#include <elf.h>
#include <stdbool.h>

#include "process/elf.h"
#include "process/elf_note.h"

/* Limits of what the reader allocates for a malformed header, far above real files. */
#define ELF_MAX_SECTIONS (1u << 20)
#define ELF_MAX_SEGMENTS 65536u
#define ELF_MAX_NAMES (64u << 20)
#define ELF_MAX_SECTION (1ull << 30)
#define ELF_MAX_NOTE (1u << 20)

/* One section's contents, uncompressed. */
struct elf_bytes {
	struct elf_bytes *next;
	uint32_t section; /* index; UINT32_MAX: .eh_frame of a file without sections */
	uint64_t len;
	char bytes[];
};

/* Which hashes of names a table of symbols has. */
struct elf_filter {
	uint64_t *bits; /* owned; NULL: the table was not searched yet, or is small */
	uint64_t mask;  /* of a bit's number */
	bool searched;
};

struct elf {
	int fd;
	uint64_t size; /* of the file */
	Elf64_Ehdr header;
	Elf64_Phdr *segments; /* nsegments, as in the file */
	uint32_t nsegments;
	Elf64_Shdr *sections; /* nsections, which may be 0 */
	uint32_t nsections;
	char *names; /* of sections; names[names_len - 1] is 0 */
	uint64_t names_len;
	struct fusee_segment *loads;
	uint32_t nloads;
	struct elf_bytes *read; /* every section that was read */
	char build_id[ELF_BUILD_ID_MAX];
	uint32_t build_id_len;
	bool notes_read;
	struct elf_filter filters[2]; /* of .symtab and .dynsym */
};

/* Reads len bytes at off. -EBADMSG: beyond the end; -EIO. */
int elf_pread(const struct elf *, void *buf, uint64_t len, uint64_t off);
/* Contents of section i, kept until elf_close(). -ENOENT: SHT_NOBITS. */
int elf_section_bytes(struct elf *, uint32_t i, const struct elf_bytes **ret);
/* Index of the first section of this name or, if name is NULL, of this type; UINT32_MAX: none. */
uint32_t elf_section_find(const struct elf *, const char *name, uint32_t type);
#endif

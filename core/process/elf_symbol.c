// SPDX-License-Identifier: Apache-2.0
/* Symbols by name, and .gnu_debuglink. */
#include <errno.h>
#include <string.h>

#include "process/internal/elf_internal.h"

/* The symbols of a table and their names. */
static int read_table(struct elf *e, uint32_t table, const struct elf_bytes **symbols,
		      const struct elf_bytes **names)
{
	uint32_t link = e->sections[table].sh_link;
	int err;

	if (!link || link >= e->nsections)
		return -EBADMSG;
	err = elf_section_bytes(e, table, symbols);
	return err ? err : elf_section_bytes(e, link, names);
}

/* "" if its position is invalid. A NUL follows the names. */
static const char *name_of(const Elf64_Sym *s, const struct elf_bytes *names)
{
	return s->st_name < names->len ? names->bytes + s->st_name : "";
}

static int find_in(struct elf *e, uint32_t table, const char *name, struct fusee_range *at)
{
	const struct elf_bytes *symbols, *names;
	int err = read_table(e, table, &symbols, &names);

	if (err)
		return err;
	for (uint64_t i = 1; i < symbols->len / sizeof(Elf64_Sym); i++) {
		Elf64_Sym s;

		memcpy(&s, symbols->bytes + i * sizeof(s), sizeof(s));
		if (s.st_shndx == SHN_UNDEF || strcmp(name_of(&s, names), name) != 0)
			continue;
		at->lo = s.st_value;
		return __builtin_add_overflow(s.st_value, s.st_size, &at->hi) ? -EBADMSG : 0;
	}
	return -ENOENT;
}

int elf_symbol(struct elf *e, const char *name, struct fusee_range *at)
{
	static const uint32_t types[] = {SHT_SYMTAB, SHT_DYNSYM};
	int err = -ENOENT;

	for (unsigned int i = 0; i < 2 && err == -ENOENT; i++) {
		uint32_t table = elf_section_find(e, NULL, types[i]);

		if (table != UINT32_MAX)
			err = find_in(e, table, name, at);
	}
	return err;
}

static bool is_among(const char *name, const char *const *names)
{
	while (*names && strcmp(*names, name) != 0)
		names++;
	return *names;
}

int elf_imports(struct elf *e, const char *const *among, bool *imports)
{
	const struct elf_bytes *symbols, *names;
	uint32_t table = elf_section_find(e, NULL, SHT_DYNSYM);
	int err = table == UINT32_MAX ? -ENOENT : read_table(e, table, &symbols, &names);

	if (err)
		return err;
	*imports = false;
	for (uint64_t i = 1; i < symbols->len / sizeof(Elf64_Sym) && !*imports; i++) {
		Elf64_Sym s;

		memcpy(&s, symbols->bytes + i * sizeof(s), sizeof(s));
		*imports = s.st_shndx == SHN_UNDEF && is_among(name_of(&s, names), among);
	}
	/* A static executable that can be loaded anywhere has the empty first symbol only. */
	return symbols->len > sizeof(Elf64_Sym) ? 0 : -ENOENT;
}

int elf_debuglink(struct elf *e, const char **name, uint32_t *crc)
{
	struct fusee_section s;
	const char *end;
	uint64_t at;
	int err = elf_section(e, ".gnu_debuglink", &s);

	if (err)
		return err;
	end = s.bytes.p ? memchr(s.bytes.p, 0, s.bytes.len) : NULL;
	if (!end || end == s.bytes.p)
		return -EBADMSG;
	at = ((uint64_t)(end - s.bytes.p) + 1 + 3) & ~3ull; /* the CRC is aligned to 4 */
	if (at > s.bytes.len || s.bytes.len - at < sizeof(*crc))
		return -EBADMSG;
	memcpy(crc, s.bytes.p + at, sizeof(*crc));
	*name = s.bytes.p;
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* Symbols by name, and .gnu_debuglink. */
#include <errno.h>
#include <string.h>

#include "process/elf_internal.h"

static int find_in(struct elf *e, uint32_t table, const char *name, struct fusee_range *at)
{
	const struct elf_bytes *symbols, *names;
	size_t len = strlen(name) + 1;
	uint32_t link;
	int err;

	link = e->sections[table].sh_link;
	if (!link || link >= e->nsections)
		return -EBADMSG;
	err = elf_section_bytes(e, table, &symbols);
	if (!err)
		err = elf_section_bytes(e, link, &names);
	if (err)
		return err;
	for (uint64_t i = 1; i < symbols->len / sizeof(Elf64_Sym); i++) {
		Elf64_Sym s;

		memcpy(&s, symbols->bytes + i * sizeof(s), sizeof(s));
		if (s.st_name >= names->len || s.st_shndx == SHN_UNDEF ||
		    len > names->len + 1 - s.st_name)
			continue;
		if (memcmp(names->bytes + s.st_name, name, len))
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

// SPDX-License-Identifier: Apache-2.0
/* Symbols by name, and .gnu_debuglink. */
#include <errno.h>
#include <stdlib.h>
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

/* ---- names that a table does not have ---- */

#define SMALL_TABLE 4096u /* symbols */

static uint64_t hash_of(const char *name)
{
	uint64_t first = 0, last = 0, len = strlen(name);

	memcpy(&first, name, len < 8 ? len : 8);
	memcpy(&last, name + (len < 8 ? 0 : len - 8), len < 8 ? len : 8);
	first = (first ^ (last << 31 | last >> 33)) * 0x9e3779b97f4a7c15ull + len;
	return first ^ first >> 32;
}

/* Each unwinder requests a few names, of which almost all files have none, and a large table takes
 * some 20 ms to search: so its second search and those behind it look at a filter first. Without
 * memory there is none. */
static void make_filter(struct elf_filter *f, const struct elf_bytes *symbols,
			const struct elf_bytes *names)
{
	uint64_t n = symbols->len / sizeof(Elf64_Sym), bits = 64;

	if (f->bits || n < SMALL_TABLE || !f->searched) {
		f->searched = true;
		return;
	}
	while (bits < 8 * n)
		bits *= 2;
	f->bits = calloc(bits / 64, sizeof(*f->bits));
	f->mask = bits - 1;
	for (uint64_t i = 1; f->bits && i < n; i++) {
		Elf64_Sym s;
		uint64_t h;

		memcpy(&s, symbols->bytes + i * sizeof(s), sizeof(s));
		h = hash_of(name_of(&s, names)) & f->mask;
		f->bits[h / 64] |= 1ull << h % 64;
	}
}

static bool may_have(const struct elf_filter *f, const char *name)
{
	uint64_t h = hash_of(name) & f->mask;

	return !f->bits || f->bits[h / 64] >> h % 64 & 1;
}

/* ---- finding ---- */

static int find_in(struct elf *e, uint32_t table, struct elf_filter *filter, const char *name,
		   struct fusee_range *at)
{
	const struct elf_bytes *symbols, *names;
	int err = read_table(e, table, &symbols, &names);

	if (err)
		return err;
	make_filter(filter, symbols, names);
	if (!may_have(filter, name))
		return -ENOENT;
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
			err = find_in(e, table, &e->filters[i], name, at);
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

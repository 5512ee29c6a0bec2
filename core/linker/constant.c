/* SPDX-License-Identifier: Apache-2.0 */
#include "linker/constant.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

struct object {
	const char *at;
	size_t len;
	Elf64_Ehdr head;
};

static bool read_at(const struct object *o, uint64_t at, void *to, size_t len)
{
	if (at > o->len || len > o->len - at)
		return false;
	memcpy(to, o->at + at, len);
	return true;
}

static bool section(const struct object *o, uint32_t i, Elf64_Shdr *s)
{
	return i < o->head.e_shnum && o->head.e_shoff <= o->len &&
	       read_at(o, o->head.e_shoff + (uint64_t)i * sizeof(*s), s, sizeof(*s));
}

/* Is this the name at `offset` of the strings? */
static bool is_name(const struct object *o, const Elf64_Shdr *strings, uint32_t offset,
		    const char *name)
{
	size_t len = strlen(name) + 1;

	return strings->sh_offset <= o->len && offset <= strings->sh_size &&
	       len <= strings->sh_size - offset && strings->sh_offset + offset <= o->len &&
	       len <= o->len - strings->sh_offset - offset &&
	       !memcmp(o->at + strings->sh_offset + offset, name, len);
}

static int place_of(const struct object *o, const Elf64_Sym *sym, size_t *at)
{
	Elf64_Shdr s;

	if (!section(o, sym->st_shndx, &s) || s.sh_type != SHT_PROGBITS ||
	    sym->st_size != sizeof(uint32_t) || s.sh_size < sizeof(uint32_t) ||
	    sym->st_value > s.sh_size - sizeof(uint32_t) || s.sh_offset > o->len ||
	    sym->st_value > o->len - s.sh_offset ||
	    o->len - s.sh_offset - sym->st_value < sizeof(uint32_t))
		return -EINVAL;
	*at = s.sh_offset + sym->st_value;
	return 0;
}

static int find_in(const struct object *o, const Elf64_Shdr *symbols, const char *name, size_t *at)
{
	Elf64_Shdr strings;
	Elf64_Sym sym;

	if (!section(o, symbols->sh_link, &strings) || symbols->sh_offset > o->len)
		return -EINVAL;
	for (uint64_t i = 0; i < symbols->sh_size / sizeof(sym); i++) {
		if (!read_at(o, symbols->sh_offset + i * sizeof(sym), &sym, sizeof(sym)))
			return -EINVAL;
		if (is_name(o, &strings, sym.st_name, name))
			return place_of(o, &sym, at);
	}
	return -ENOENT;
}

int constant_find(const void *object, size_t len, const char *name, size_t *at)
{
	struct object o = {.at = object, .len = len};
	Elf64_Shdr s;

	if (!read_at(&o, 0, &o.head, sizeof(o.head)) ||
	    memcmp(o.head.e_ident, ELFMAG, SELFMAG) != 0 ||
	    o.head.e_ident[EI_CLASS] != ELFCLASS64 || o.head.e_shentsize != sizeof(s))
		return -EINVAL;
	for (uint32_t i = 0; section(&o, i, &s); i++)
		if (s.sh_type == SHT_SYMTAB)
			return find_in(&o, &s, name, at);
	return -ENOENT;
}

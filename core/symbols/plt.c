// SPDX-License-Identifier: Apache-2.0
/* An entry jumps by a word of the GOT, whose relocation names the function. */
#include "symbols/internal/plt.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "symbols/internal/symtab.h"
#include "symbols/source.h"

#define MAX_BYTES (64u << 20) /* of one section */

struct got_word {
	uint64_t at;
	uint32_t symbol;
};

struct got {
	struct got_word *words; /* owned, sorted by address */
	size_t n, cap;
	char *symbols, *names; /* owned: .dynsym, .dynstr */
	size_t nsymbols, nnames;
};

static void got_fini(struct got *g)
{
	free(g->words);
	free(g->symbols);
	free(g->names);
}

static int compare(const void *a, const void *b)
{
	const struct got_word *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

/* Unreadable sections are missing names, and no error. */
static int got_load(struct got *g, const struct source *src, const char *relocations)
{
	char *p = NULL;
	size_t len, nsymbols;
	int r = source_load(src, relocations, MAX_BYTES, &p, &len);

	if (!r)
		r = source_load(src, ".dynsym", MAX_BYTES, &g->symbols, &nsymbols);
	if (!r)
		r = source_load(src, ".dynstr", MAX_BYTES, &g->names, &g->nnames);
	g->nsymbols = r ? 0 : nsymbols / sizeof(Elf64_Sym);
	for (size_t i = 0; !r && i < len / sizeof(Elf64_Rela); i++) {
		struct got_word *w;
		Elf64_Rela a;

		memcpy(&a, p + i * sizeof(a), sizeof(a));
		if (ELF64_R_TYPE(a.r_info) != R_X86_64_JUMP_SLOT &&
		    ELF64_R_TYPE(a.r_info) != R_X86_64_GLOB_DAT)
			continue;
		w = ARRAY_ADD(g->words, g->n, g->cap);
		if (w)
			*w = (struct got_word){a.r_offset, (uint32_t)ELF64_R_SYM(a.r_info)};
		else
			r = -ENOMEM;
	}
	free(p);
	if (g->n)
		qsort(g->words, g->n, sizeof(*g->words), compare);
	return r == -ENOMEM ? r : 0;
}

/* NULL: no relocation, or one without a name. */
static const char *got_name(const struct got *g, uint64_t at)
{
	size_t i = array_count_to(g->words, g->n, sizeof(*g->words), at);
	Elf64_Sym y;

	if (!i || g->words[i - 1].at != at || g->words[i - 1].symbol >= g->nsymbols)
		return NULL;
	memcpy(&y, g->symbols + g->words[i - 1].symbol * sizeof(y), sizeof(y));
	return y.st_name < g->nnames && g->names[y.st_name] ? g->names + y.st_name : NULL;
}

/* The jump may be behind endbr64, a bnd prefix and, of mold's, the entry's number. */
static const char *entry_name(const struct got *g, const uint8_t *code, size_t size, uint64_t at)
{
	static const uint8_t places[] = {0, 1, 4, 5, 10};
	const char *name = NULL;
	int32_t distance;

	for (size_t i = 0; !name && i < sizeof(places) && places[i] + 6u <= size; i++) {
		const uint8_t *p = code + places[i];

		if (p[0] != 0xff || p[1] != 0x25) /* jmp *distance(%rip) */
			continue;
		memcpy(&distance, p + 2, sizeof(distance));
		name = got_name(g, at + places[i] + 6 + (uint64_t)distance);
	}
	return name;
}

static int add_entries(struct symtab *t, const struct got *g, const uint8_t *code, size_t len,
		       uint64_t at, size_t size)
{
	int r = 0;

	for (size_t i = 0; !r && len - i >= size; i += size) {
		const char *name = entry_name(g, code + i, size, at + i);

		if (name)
			r = symtab_add_one(t, at + i, size, name, "@plt");
	}
	return r;
}

static int add_section(struct symtab *t, const struct source *src, const char *name,
		       const char *relocations)
{
	const struct source_section *s = source_find(src, name);
	struct got g = {0};
	char *code = NULL;
	size_t len;
	int r;

	if (!s || source_load(src, name, MAX_BYTES, &code, &len))
		return 0;
	r = got_load(&g, src, relocations);
	/* GNU's .plt.got has jmp and a nop of two bytes */
	if (!r)
		r = add_entries(t, &g, (uint8_t *)code, len, s->vaddr,
				len >= 8 && !memcmp(code, "\xff\x25", 2) &&
						!memcmp(code + 6, "\x66\x90", 2)
					? 8
					: 16);
	got_fini(&g);
	free(code);
	return r;
}

int plt_add(struct symtab *t, const struct source *src)
{
	int r;

	if (source_machine(src) != EM_X86_64)
		return 0;
	r = add_section(t, src, ".plt", ".rela.plt");
	if (!r)
		r = add_section(t, src, ".plt.sec", ".rela.plt");
	return r ? r : add_section(t, src, ".plt.got", ".rela.dyn");
}

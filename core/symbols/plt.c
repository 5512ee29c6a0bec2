// SPDX-License-Identifier: Apache-2.0
/* An entry jumps by a word of the GOT, whose relocation names the function; or the code that
 * chooses it at run time, in which case the symbol of that code has the name. */
#include "symbols/internal/plt.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "symbols/internal/symtab.h"
#include "symbols/internal/source.h"

#define MAX_BYTES (64u << 20) /* of one section */

#define NO_SYMBOL UINT32_MAX

struct got_word {
	uint64_t at;
	uint64_t resolver; /* with NO_SYMBOL: the code that chooses the function */
	uint32_t symbol;
};

/* Such code, and its best symbol. */
struct resolver {
	uint64_t at;
	size_t symbol; /* 1 + its index in the table; 0: none */
};

struct got {
	struct got_word *words; /* owned, sorted by address */
	size_t n, cap;
	struct resolver *resolvers; /* owned, sorted by address */
	size_t nresolvers, resolvers_cap;
	char *symbols, *names; /* owned: .dynsym, .dynstr */
	size_t nsymbols, nnames;
};

static void got_fini(struct got *g)
{
	free(g->words);
	free(g->resolvers);
	free(g->symbols);
	free(g->names);
}

/* By their first member. */
static int compare(const void *a, const void *b)
{
	uint64_t x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return x < y ? -1 : x > y;
}

static int add_word(struct got *g, const Elf64_Rela *a)
{
	uint64_t type = ELF64_R_TYPE(a->r_info), chosen = type == R_X86_64_IRELATIVE;
	struct got_word *w;
	struct resolver *r;

	if (!chosen && type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT)
		return 0;
	w = ARRAY_ADD(g->words, g->n, g->cap);
	if (!w)
		return -ENOMEM;
	*w = (struct got_word){a->r_offset, chosen ? (uint64_t)a->r_addend : 0,
			       chosen ? NO_SYMBOL : (uint32_t)ELF64_R_SYM(a->r_info)};
	if (!chosen)
		return 0;
	r = ARRAY_ADD(g->resolvers, g->nresolvers, g->resolvers_cap);
	if (r)
		*r = (struct resolver){w->resolver, 0};
	return r ? 0 : -ENOMEM;
}

static struct resolver *find_resolver(const struct got *g, uint64_t at)
{
	size_t i = array_count_to(g->resolvers, g->nresolvers, sizeof(*g->resolvers), at);

	return i && g->resolvers[i - 1].at == at ? &g->resolvers[i - 1] : NULL;
}

/* Symbols that say that they choose go before others, such as that of the code. */
static bool is_better(const struct symtab_entry *e, const struct symtab_entry *than)
{
	return e->chooses != than->chooses ? e->chooses : e->rank > than->rank;
}

static void find_symbols(struct got *g, const struct symtab *t)
{
	if (!g->nresolvers)
		return;
	qsort(g->resolvers, g->nresolvers, sizeof(*g->resolvers), compare);
	for (size_t i = 0; i < t->n; i++) {
		struct resolver *r = find_resolver(g, t->entries[i].start);

		if (r && (!r->symbol || is_better(&t->entries[i], &t->entries[r->symbol - 1])))
			r->symbol = i + 1;
	}
}

/* An unreadable section is no error: names are missing then. */
static int got_load(struct got *g, const struct source *src, const char *relocations,
		    const struct symtab *t)
{
	char *p = NULL;
	size_t len, nsymbols;
	int r = source_load(src, relocations, MAX_BYTES, &p, &len);

	if (r)
		return r == -ENOMEM ? r : 0;
	/* a static program has none */
	r = source_load(src, ".dynsym", MAX_BYTES, &g->symbols, &nsymbols);
	if (!r)
		r = source_load(src, ".dynstr", MAX_BYTES, &g->names, &g->nnames);
	g->nsymbols = r ? 0 : nsymbols / sizeof(Elf64_Sym);
	r = r == -ENOMEM ? r : 0;
	for (size_t i = 0; !r && i < len / sizeof(Elf64_Rela); i++) {
		Elf64_Rela a;

		memcpy(&a, p + i * sizeof(a), sizeof(a));
		r = add_word(g, &a);
	}
	free(p);
	if (g->n)
		qsort(g->words, g->n, sizeof(*g->words), compare);
	find_symbols(g, t);
	return r;
}

/* NULL: no relocation, or one without a name. */
static const char *got_name(const struct got *g, uint64_t at, const struct symtab *t)
{
	size_t i = array_count_to(g->words, g->n, sizeof(*g->words), at);
	const struct got_word *w = i ? &g->words[i - 1] : NULL;
	const struct resolver *r;
	Elf64_Sym y;

	if (!w || w->at != at)
		return NULL;
	if (w->symbol == NO_SYMBOL) {
		r = find_resolver(g, w->resolver);
		return r && r->symbol ? symtab_name(t, &t->entries[r->symbol - 1]) : NULL;
	}
	if (w->symbol >= g->nsymbols)
		return NULL;
	memcpy(&y, g->symbols + w->symbol * sizeof(y), sizeof(y));
	return y.st_name < g->nnames && g->names[y.st_name] ? g->names + y.st_name : NULL;
}

/* The jump may be preceded by endbr64, a bnd prefix and, in files of the linker mold, a load of the
 * entry's number. */
static const char *entry_name(const struct symtab *t, const struct got *g, const uint8_t *code,
			      size_t size, uint64_t at)
{
	static const uint8_t places[] = {0, 1, 4, 5, 10};
	const char *name = NULL;
	int32_t distance;

	for (size_t i = 0; !name && i < sizeof(places) && places[i] + 6u <= size; i++) {
		const uint8_t *p = code + places[i];

		if (p[0] != 0xff || p[1] != 0x25) /* jmp *distance(%rip) */
			continue;
		memcpy(&distance, p + 2, sizeof(distance));
		name = got_name(g, at + places[i] + 6 + (uint64_t)distance, t);
	}
	return name;
}

static int add_entries(struct symtab *t, const struct got *g, const uint8_t *code, size_t len,
		       uint64_t at, size_t size)
{
	int r = 0;

	for (size_t i = 0; !r && len - i >= size; i += size) {
		const char *name = entry_name(t, g, code + i, size, at + i);
		char *copy = name ? strdup(name) : NULL; /* names of the table move */

		if (name)
			r = copy ? symtab_add_one(t, at + i, size, copy, "@plt") : -ENOMEM;
		free(copy);
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
	r = got_load(&g, src, relocations, t);
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
	/* .iplt is of lld, for functions that are chosen at run time */
	static const char *const sections[][2] = {
		{".plt", ".rela.plt"},  {".plt.sec", ".rela.plt"}, {".plt.got", ".rela.dyn"},
		{".iplt", ".rela.plt"}, {".iplt", ".rela.dyn"},
	};
	int r = 0;

	if (source_machine(src) != EM_X86_64)
		return 0;
	for (size_t i = 0; !r && i < sizeof(sections) / sizeof(*sections); i++)
		r = add_section(t, src, sections[i][0], sections[i][1]);
	return r;
}

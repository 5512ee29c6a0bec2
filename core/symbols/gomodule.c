// SPDX-License-Identifier: Apache-2.0
/* Finds runtime.moduledata by the words that it must contain. */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "symbols/internal/gotable.h"
#include "symbols/internal/source.h"

/* runtime.moduledata since Go 1.18, in words of 8 bytes */
#define AT_HEADER 0 /* -> the table */
#define AT_FTAB 16  /* slice: pointer, length, capacity */
#define AT_MINPC 20
#define AT_MAXPC 21
#define AT_TEXT 22
#define AT_ETEXT 23
#define AT_GOFUNC(v) ((v) == GO_118 ? 38 : 40) /* 1.20 put two words before it */
#define WORDS 41

#define MAX_SECTION (256u << 20)
#define MAX_FUNCDATA (256u << 20)

struct relocations {
	Elf64_Rela *p; /* owned */
	size_t n;
};

static void load_relocations(struct relocations *r, const struct source *src)
{
	char *p;
	size_t len;

	if (!source_load(src, ".rela.dyn", MAX_SECTION, &p, &len) ||
	    !source_load(src, ".rela", MAX_SECTION, &p, &len)) {
		r->p = (Elf64_Rela *)(void *)p;
		r->n = len / sizeof(*r->p);
	}
}

/* Position-independent programs have pointers in relocations and not in the bytes. */
static void relocate(const struct relocations *r, uint64_t vaddr, uint64_t words[WORDS])
{
	for (size_t i = 0; i < r->n; i++) {
		uint64_t at = r->p[i].r_offset - vaddr;

		if (at < WORDS * 8 && !(at & 7) && r->p[i].r_offset >= vaddr && r->p[i].r_addend)
			words[at / 8] = (uint64_t)r->p[i].r_addend;
	}
}

/* Whether these words are the module. Many words of a program equal the table's address, so the
 * words around are compared too. */
static bool is_module(const struct gopclntab *t, const struct source *src, const uint64_t w[WORDS])
{
	uint64_t ftab = w[AT_FTAB] - t->vaddr;

	return w[AT_HEADER] == t->vaddr && w[AT_FTAB + 1] == t->nfunc + 1 &&
	       w[AT_FTAB] >= t->vaddr && ftab == (uint64_t)(t->funcs.p - t->bytes) &&
	       w[AT_TEXT] <= w[AT_MINPC] && w[AT_MINPC] < w[AT_MAXPC] &&
	       w[AT_MAXPC] <= w[AT_ETEXT] && source_is_code(src, w[AT_MINPC]);
}

/* Reads go:func.* up to the end of its section, as its length is not recorded. */
static int load_funcdata(struct gopclntab *t, const struct source *src, uint64_t vaddr)
{
	const struct source_section *c;

	for (size_t i = 0; (c = source_section(src, i)); i++) {
		uint64_t at = vaddr - c->vaddr;

		if (!(c->flags & SHF_ALLOC) || c->type == SHT_NOBITS ||
		    c->packing != SOURCE_PLAIN || vaddr < c->vaddr || at >= c->size)
			continue;
		t->nfuncdata = c->size - at < MAX_FUNCDATA ? c->size - at : MAX_FUNCDATA;
		t->funcdata = malloc(t->nfuncdata);
		if (!t->funcdata)
			return -ENOMEM;
		if (source_read_at(src, vaddr, t->funcdata, t->nfuncdata)) {
			free(t->funcdata);
			t->funcdata = NULL;
			t->nfuncdata = 0;
		}
		return 0;
	}
	return 0;
}

/* Tries the words at vaddr. 1: they are the module; 0: they are not; -ENOMEM. */
static int try_module(struct gopclntab *t, const struct source *src, const struct relocations *r,
		      uint64_t vaddr)
{
	uint64_t words[WORDS];
	int err;

	if (source_read_at(src, vaddr, words, sizeof(words)))
		return 0;
	relocate(r, vaddr, words);
	if (!is_module(t, src, words))
		return 0;
	t->text = words[AT_TEXT];
	err = load_funcdata(t, src, words[AT_GOFUNC(t->version)]);
	return err ? err : 1;
}

/* Tries each place in a section that has the table's address. */
static int scan_section(struct gopclntab *t, const struct source *src, const struct relocations *r,
			const struct source_section *c)
{
	char *bytes = NULL;
	uint64_t word;
	int found = 0;

	if (c->size > MAX_SECTION)
		return 0;
	bytes = malloc(c->size + 1);
	if (!bytes)
		return -ENOMEM;
	if (!source_read(src, c, bytes)) {
		for (uint64_t at = -c->vaddr & 7; c->size >= 8 && at <= c->size - 8 && !found;
		     at += 8) {
			memcpy(&word, bytes + at, 8);
			if (word == t->vaddr)
				found = try_module(t, src, r, c->vaddr + at);
		}
	}
	free(bytes);
	return found;
}

int gomodule_find(struct gopclntab *t, const struct source *src)
{
	struct relocations r = {0};
	const struct source_section *c;
	uint32_t tries = 0;
	int found = 0;

	if (t->version < GO_118 || t->pointer != 8)
		return 0;
	load_relocations(&r, src);
	for (size_t i = 0; i < r.n && !found && tries < 64; i++)
		if ((uint64_t)r.p[i].r_addend == t->vaddr) {
			tries++;
			found = try_module(t, src, &r, r.p[i].r_offset);
		}
	for (size_t i = 0; !found && (c = source_section(src, i)); i++)
		if (c->flags & SHF_ALLOC && c->flags & SHF_WRITE && c->type == SHT_PROGBITS)
			found = scan_section(t, src, &r, c);
	/* 1.18 to 1.25 have the base in the table; in a PIE there is a relocation for it */
	for (size_t i = 0; !found && !t->text && i < r.n; i++)
		if (r.p[i].r_offset == t->vaddr + 24 && r.p[i].r_addend)
			t->text = (uint64_t)r.p[i].r_addend;
	free(r.p);
	return found < 0 ? found : 0;
}

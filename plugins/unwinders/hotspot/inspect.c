/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect.h"

#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>

#include "required.h"
#include "threads.h"
#include "words.h"

#define MOST_RELOCATIONS (1u << 21)
#define MOST_ENTRIES 8192u /* entries of a list; releases have some 800 */
#define TEXT 64            /* bytes for a name, with its NUL; longer names are not looked for */

struct pointer {
	uint64_t at, to; /* vaddrs */
};

struct library {
	const struct fusee_self *self;
	const struct fusee_unwinder_host *host;
	uint64_t file;
	struct pointer *pointers; /* what relocations write, sorted by `at` */
	uint64_t npointers;
	uint32_t words[HOTSPOT_TABLE_WORDS];
};

/* ---- pointers in the file ---- */

static int by_place(const void *a, const void *b)
{
	const struct pointer *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

/* Reads the relative relocations of the file. 0 or -errno. */
static int read_pointers(struct library *l)
{
	struct fusee_section s = FUSEE_SIZED(struct fusee_section);
	Elf64_Rela r;
	uint64_t n;

	if (l->host->file_section(l->file, ".rela.dyn", &s) || !s.bytes.p)
		return -ENOENT;
	n = s.bytes.len / sizeof(r);
	if (n > MOST_RELOCATIONS)
		return -E2BIG;
	l->pointers = malloc((n ? n : 1) * sizeof(*l->pointers));
	if (!l->pointers)
		return -ENOMEM;
	for (uint64_t i = 0; i < n; i++) {
		memcpy(&r, (const char *)s.bytes.p + i * sizeof(r), sizeof(r));
		if (ELF64_R_TYPE(r.r_info) == R_X86_64_RELATIVE)
			l->pointers[l->npointers++] = (struct pointer){r.r_offset,
								       (uint64_t)r.r_addend};
	}
	qsort(l->pointers, l->npointers, sizeof(*l->pointers), by_place);
	return 0;
}

/* The value of the pointer at this vaddr. 0: none. */
static uint64_t pointer_at(const struct library *l, uint64_t at)
{
	const struct pointer key = {at, 0};
	const struct pointer *p = bsearch(&key, l->pointers, l->npointers, sizeof(key), by_place);
	uint64_t to;

	if (p)
		return p->to;
	/* packed relocations (.relr.dyn) add to a value that is in the file itself */
	return l->host->file_read(l->file, at, &to, sizeof(to)) ? 0 : to;
}

/* Reads the text that the pointer at this vaddr leads to; "" if there is none, or it is too
 * long. */
static void read_text(const struct library *l, uint64_t at, char text[TEXT])
{
	uint64_t from = pointer_at(l, at);

	if (!from || l->host->file_read(l->file, from, text, TEXT) || !memchr(text, 0, TEXT))
		*text = '\0';
}

/* ---- the lists ---- */

/* A list of entries that begin with a name. */
struct list {
	const char *symbol;
	uint32_t stride;
	bool of_fields; /* an entry has two names: a type's and a field's */
	uint8_t kind;   /* of entries with one name: SIZE or CONSTANT */
};

static const struct list lists[] = {
	{"gHotSpotVMStructs", LAYOUT_FIELD, true, FIELD},
	{"gHotSpotVMTypes", LAYOUT_TYPE, false, SIZE},
	{"gHotSpotVMIntConstants", LAYOUT_CONSTANT, false, CONSTANT},
};

/* Stores the entry's vaddr for each requirement that has its names. */
static void take(struct library *l, const struct list *list, uint64_t entry, const char *type,
		 const char *field)
{
	for (uint32_t i = 0; i < REQUIRED && entry <= UINT32_MAX; i++) {
		const struct required *q = &hotspot_required[i];
		bool fits = list->of_fields ? q->field && !strcmp(field, q->field)
					    : q->kind == list->kind;

		if (fits && !strcmp(type, q->type))
			l->words[LAYOUT_VARIABLES + i] = (uint32_t)entry;
	}
}

/* Takes each entry of the list that this exported variable points to. */
static void read_list(struct library *l, const struct list *list)
{
	char type[TEXT], field[TEXT] = "";
	struct fusee_range at;
	uint64_t entry;

	if (l->host->file_symbol(l->file, list->symbol, &at))
		return;
	entry = pointer_at(l, at.lo);
	for (uint32_t i = 0; entry && i < MOST_ENTRIES && pointer_at(l, entry); i++) {
		read_text(l, entry, type);
		if (list->of_fields)
			read_text(l, entry + LAYOUT_FIELD_NAME, field);
		if (*type)
			take(l, list, entry, type, field);
		entry += list->stride;
	}
}

/* ---- all of it ---- */

/* Returns the first requirement that no list satisfies under any of its names, NULL if there is
 * none. */
static const struct required *find_missing(const struct library *l)
{
	bool found[HOTSPOT_FIELD_WORDS] = {false};

	for (uint32_t i = 0; i < REQUIRED; i++) {
		const struct required *q = &hotspot_required[i];

		found[q->word] |= q->need != MUST || l->words[LAYOUT_VARIABLES + i];
		if (q->need == INSTEAD)
			found[q->instead] |= l->words[LAYOUT_VARIABLES + i] != 0;
	}
	for (uint32_t i = 0; i < REQUIRED; i++)
		if (!found[hotspot_required[i].word])
			return &hotspot_required[i];
	return NULL;
}

/* Makes the table of the library. 1 or -errno. */
static int make(struct library *l)
{
	static const char not_named[] = "Java's methods are not named: this JVM";
	const struct required *missing;
	struct fusee_range at;
	int r = read_pointers(l);

	if (r)
		return fusee_fail(l->self, r, "%s has relocations that cannot be read", not_named);
	for (uint32_t i = 0; i < LAYOUT_VARIABLES; i++) {
		if (l->host->file_symbol(l->file, hotspot_layout[i].symbol, &at) ||
		    at.lo > UINT32_MAX)
			return fusee_fail(l->self, -ENOTSUP, "%s has no %s", not_named,
					  hotspot_layout[i].symbol);
		l->words[i] = (uint32_t)at.lo;
	}
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
		read_list(l, &lists[i]);
	if (!l->host->file_symbol(l->file, "_ZN11JvmtiExport19_redefinition_countE", &at) &&
	    at.lo <= UINT32_MAX)
		l->words[HOTSPOT_TABLE_REDEFINED] = (uint32_t)at.lo;
	missing = find_missing(l);
	if (missing)
		return fusee_fail(l->self, -ENOTSUP, "%s does not describe %s%s%s", not_named,
				  missing->type, missing->field ? "::" : "",
				  missing->field ? missing->field : "");
	r = l->host->file_slab(l->self->in, l->file, l->words, HOTSPOT_TABLE_WORDS);
	if (r)
		return r;
	r = hotspot_claim_threads(l->self, l->file);
	if (!r)
		fusee_fail(l->self, -ENOENT,
			   "work of the JVM's own threads is not shown: it has no symbols");
	return r < 0 ? r : 1;
}

int hotspot_inspect(const struct fusee_self *self, uint64_t file)
{
	struct library l = {.self = self, .host = self->host->unwinder, .file = file};
	struct fusee_file_info info = FUSEE_SIZED(struct fusee_file_info);
	struct fusee_range at;
	int r;

	if (l.host->file_info(file, &info) || info.machine != EM_X86_64 ||
	    l.host->file_symbol(file, "gHotSpotVMStructs", &at))
		return 0;
	r = make(&l);
	free(l.pointers);
	return r;
}

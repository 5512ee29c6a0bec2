// SPDX-License-Identifier: Apache-2.0
/* Reads function symbols, and decides which of several symbols names an address. */
#include "symbols/internal/symtab.h"

#include <elf.h>
#include <errno.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "symbols/fde.h"
#include "symbols/internal/source.h"

#define MAX_BYTES (1u << 30) /* of one table */
#define MAX_NAME 65535
#define MAX_DEBUGDATA (256u << 20) /* uncompressed */
#define XZ_MEMORY (96u << 20)      /* bytes of its dictionary */

/* Global over weak over local, then fewer leading underscores, then the shorter name. */
static uint32_t rank_of(const Elf64_Sym *y, const char *name)
{
	uint32_t bind = ELF64_ST_BIND(y->st_info), underscores = 0;
	size_t len = strlen(name);

	while (name[underscores] == '_' && underscores < 15)
		underscores++;
	bind = bind == STB_GLOBAL || bind == STB_GNU_UNIQUE ? 2 : bind == STB_WEAK;
	return bind << 20 | (15 - underscores) << 16 |
	       (uint32_t)(MAX_NAME - (len < MAX_NAME ? len : MAX_NAME));
}

/* Whether the symbol is a function, or an untyped symbol (of assembly) in code. */
static bool is_function(const struct source *src, const Elf64_Sym *y, const char *name)
{
	switch (ELF64_ST_TYPE(y->st_info)) {
	case STT_FUNC:
	case STT_GNU_IFUNC:
		break;
	case STT_NOTYPE:
		if (name[0] == '$' || !strncmp(name, ".L", 2))
			return false; /* mapping symbols, local labels */
		break;
	default:
		return false;
	}
	return y->st_shndx != SHN_UNDEF && y->st_shndx != SHN_ABS && name[0] &&
	       source_is_code(src, y->st_value);
}

static int push(struct symtab *t, const struct symtab_entry *e)
{
	struct symtab_entry *to = t->n < UINT32_MAX / 2 ? ARRAY_ADD(t->entries, t->n, t->cap)
							: NULL;

	if (!to)
		return -ENOMEM;
	*to = *e;
	return 0;
}

int symtab_add_one(struct symtab *t, uint64_t start, uint64_t size, const char *name,
		   const char *suffix)
{
	const Elf64_Sym y = {.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)};
	struct symtab_entry e = {start, size, (uint32_t)t->names.len, rank_of(&y, name), 0};

	if (t->names.len + 2 * MAX_NAME > UINT32_MAX)
		return 0;
	if (buf_add(&t->names, name, strnlen(name, MAX_NAME)) || buf_str(&t->names, suffix) ||
	    buf_add(&t->names, "", 1))
		return -ENOMEM;
	return push(t, &e);
}

/* Copies only the names of functions: a .strtab has far more. */
static int add_symbols(struct symtab *t, const struct source *src, const char *symbols, size_t len,
		       const char *strings, size_t nstrings)
{
	int added = 0;

	for (size_t i = 0; i < len / sizeof(Elf64_Sym); i++) {
		Elf64_Sym y;
		struct symtab_entry e;
		const char *name;

		memcpy(&y, symbols + i * sizeof(y), sizeof(y));
		if (y.st_name >= nstrings)
			continue;
		name = strings + y.st_name; /* a NUL follows the table */
		if (!is_function(src, &y, name))
			continue;
		if (t->names.len + MAX_NAME > UINT32_MAX)
			break;
		e = (struct symtab_entry){y.st_value, y.st_size, (uint32_t)t->names.len,
					  rank_of(&y, name),
					  ELF64_ST_TYPE(y.st_info) == STT_GNU_IFUNC};
		if (buf_add(&t->names, name, strnlen(name, MAX_NAME)) || buf_add(&t->names, "", 1))
			return -ENOMEM;
		if (push(t, &e))
			return -ENOMEM;
		added++;
	}
	return added;
}

int symtab_add(struct symtab *t, const struct source *src, const char *table, const char *strings)
{
	char *symbols = NULL, *text = NULL;
	size_t len, ntext;
	int r = source_load(src, table, MAX_BYTES, &symbols, &len);

	if (r)
		return r;
	r = source_load(src, strings, MAX_BYTES, &text, &ntext);
	if (!r)
		r = add_symbols(t, src, symbols, len, text, ntext);
	free(symbols);
	free(text);
	return r;
}

static int unpack_xz(const char *packed, size_t len, struct buf *out)
{
	lzma_stream z = LZMA_STREAM_INIT;
	lzma_ret state = LZMA_OK;
	int r = -ENOMEM;

	if (lzma_stream_decoder(&z, XZ_MEMORY, 0) != LZMA_OK)
		return r;
	z.next_in = (const uint8_t *)packed;
	z.avail_in = len;
	while (state == LZMA_OK) {
		size_t room = 1u << 20;

		if (out->len >= MAX_DEBUGDATA) {
			r = -EFBIG;
			goto out;
		}
		z.next_out = buf_grow(out, room);
		if (!z.next_out)
			goto out;
		z.avail_out = room;
		state = lzma_code(&z, LZMA_FINISH);
		out->len -= z.avail_out;
	}
	r = state == LZMA_STREAM_END ? 0 : -EBADMSG;
out:
	lzma_end(&z);
	return r;
}

int symtab_add_debugdata(struct symtab *t, const struct source *src)
{
	struct source *inner = NULL;
	struct buf image = {0};
	char *packed = NULL;
	size_t len;
	int r = source_load(src, ".gnu_debugdata", MAX_DEBUGDATA, &packed, &len);

	if (r)
		return r;
	r = unpack_xz(packed, len, &image);
	if (r)
		goto out;
	r = source_open_memory(&inner, image.p, image.len);
	if (r)
		goto out;
	r = symtab_add(t, inner, ".symtab", ".strtab");
out:
	source_close(inner);
	buf_fini(&image);
	free(packed);
	return r;
}

bool symtab_has_sizeless(const struct symtab *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (!t->entries[i].size)
			return true;
	return false;
}

/* By address; aliases by rank, then by name, as the last of equal ranges is innermost. */
static int compare(const void *a, const void *b, void *arg)
{
	const struct symtab_entry *x = a, *y = b;
	const struct symtab *t = arg;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->size != y->size)
		return x->size < y->size ? -1 : 1;
	return -strcmp(t->names.p + x->name, t->names.p + y->name);
}

int symtab_finish(struct symtab *t, const struct fdes *fdes)
{
	struct range *r = malloc((t->n + 1) * sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	if (t->n)
		qsort_r(t->entries, t->n, sizeof(*t->entries), compare, t);
	for (size_t i = 0; i < t->n; i++) {
		struct symtab_entry *e = &t->entries[i];

		if (!e->size && fdes) {
			const struct fde *f = fdes_find(fdes, e->start);

			/* the FDE of a return from signal handlers begins one byte before it */
			if (!f || f->start != e->start)
				f = fdes_find(fdes, e->start - 1);
			if (f && f->end > e->start && e->start - f->start <= 1)
				e->size = f->end - e->start;
		}
		r[i] = (struct range){e->start, e->start, (uint32_t)i, (uint32_t)i};
		if (__builtin_add_overflow(e->start, e->size, &r[i].hi))
			r[i].hi = e->start;
	}
	err = ranges_flatten(r, t->n, &t->segments, &t->nsegments);
	free(r);
	return err;
}

const struct symtab_entry *symtab_find(const struct symtab *t, uint64_t addr)
{
	const struct segment *s = segments_find(t->segments, t->nsegments, addr);

	return s && s->id != RANGES_NONE ? &t->entries[s->id] : NULL;
}

const struct symtab_entry *symtab_behind(const struct symtab *t, uint64_t addr)
{
	size_t i = array_count_to(t->entries, t->n, sizeof(*t->entries), addr);

	/* the code of a symbol without a size may reach as far as addr */
	if (i == t->n || t->entries[i].start != addr + 1 || (i && !t->entries[i - 1].size))
		return NULL;
	return symtab_find(t, addr) ? NULL : symtab_find(t, addr + 1);
}

const char *symtab_name(const struct symtab *t, const struct symtab_entry *e)
{
	return t->names.p + e->name;
}

uint64_t symtab_gap(const struct symtab *t, uint64_t addr)
{
	const struct segment *s = segments_find(t->segments, t->nsegments, addr);

	return s && s->id == RANGES_NONE ? s->lo : 0;
}

void symtab_fini(struct symtab *t)
{
	free(t->entries);
	free(t->segments);
	buf_fini(&t->names);
	*t = (struct symtab){0};
}

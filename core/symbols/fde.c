// SPDX-License-Identifier: Apache-2.0
#include "symbols/internal/fde.h"

#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "symbols/internal/ranges.h"
#include "symbols/internal/source.h"

#define MAX_BYTES (1u << 30)

/* One section, and the pointer encoding of the last CIE. */
struct frames {
	Elf_Data data;
	uint64_t vaddr;
	bool eh;
	Dwarf_Off cie;
	int encoding; /* -1: cannot be read */
};

static int encoding_of(const struct frames *f, const Dwarf_CIE *c)
{
	const uint8_t *p = c->augmentation_data, *end = p + c->augmentation_data_size;

	if (!f->eh)
		return DW_EH_PE_absptr;
	if (!c->augmentation || c->augmentation[0] != 'z')
		return c->augmentation && !c->augmentation[0] ? DW_EH_PE_absptr : -1;
	for (const char *a = c->augmentation + 1; *a && p < end; a++) {
		uint8_t how;

		switch (*a) {
		case 'R':
			return *p;
		case 'L':
			p++;
			break;
		case 'P':
			how = *p++ & 0x0f;
			p += how == DW_EH_PE_udata2 || how == DW_EH_PE_sdata2   ? 2
			     : how == DW_EH_PE_udata4 || how == DW_EH_PE_sdata4 ? 4
										: 8;
			break;
		case 'S':
		case 'B':
			break;
		default:
			return -1;
		}
	}
	return DW_EH_PE_absptr;
}

/* Reads an encoded value of *used bytes at p. pc-relative is relative to p. */
static bool read_value(const struct frames *f, const uint8_t *p, const uint8_t *end, int encoding,
		       uint64_t *ret, size_t *used)
{
	uint64_t v = 0;
	size_t n;

	switch (encoding & 0x07) {
	case DW_EH_PE_udata2:
		n = 2;
		break;
	case DW_EH_PE_udata4:
		n = 4;
		break;
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
		n = 8;
		break;
	default:
		return false;
	}
	if (p > end || n > (size_t)(end - p))
		return false;
	memcpy(&v, p, n);
	if (encoding & DW_EH_PE_signed && n < 8)
		v = (uint64_t)((int64_t)(v << (64 - 8 * n)) >> (64 - 8 * n));
	if ((encoding & 0x70) == DW_EH_PE_pcrel)
		v += f->vaddr + (uint64_t)(p - (const uint8_t *)f->data.d_buf);
	*ret = v;
	*used = n;
	return true;
}

static int add(struct fdes *all, uint64_t start, uint64_t len)
{
	struct fde *p;
	uint64_t end;

	if (!len || __builtin_add_overflow(start, len, &end))
		return 0;
	p = ARRAY_ADD(all->p, all->n, all->cap);
	if (!p)
		return -ENOMEM;
	*p = (struct fde){start, end};
	return 0;
}

static int add_fde(struct fdes *all, struct frames *f, const unsigned char *ident,
		   const Dwarf_FDE *e)
{
	uint64_t start, len;
	size_t used;

	if (f->cie != e->CIE_pointer) {
		Dwarf_CFI_Entry cie;
		Dwarf_Off next;

		f->cie = e->CIE_pointer;
		f->encoding = -1;
		if (!dwarf_next_cfi(ident, &f->data, f->eh, f->cie, &next, &cie) &&
		    dwarf_cfi_cie_p(&cie))
			f->encoding = encoding_of(f, &cie.cie);
	}
	/* data- or function-relative, indirect: compilers do not write these for code */
	if (f->encoding < 0 || ((f->encoding & 0xf0) & ~DW_EH_PE_pcrel))
		return 0;
	if (!read_value(f, e->start, e->end, f->encoding, &start, &used) ||
	    !read_value(f, e->start + used, e->end, f->encoding & 0x07, &len, &used))
		return 0;
	return add(all, start, len);
}

static int add_section(struct fdes *all, const struct source *src, const char *name, bool eh)
{
	static const unsigned char ident[EI_NIDENT] = {ELFMAG0,    ELFMAG1,     ELFMAG2,   ELFMAG3,
						       ELFCLASS64, ELFDATA2LSB, EV_CURRENT};
	const struct source_section *c = source_find(src, name);
	struct frames f = {.eh = eh, .cie = (Dwarf_Off)-1};
	Dwarf_CFI_Entry entry;
	Dwarf_Off at = 0, next;
	char *bytes;
	size_t len;
	int r = source_load(src, name, MAX_BYTES, &bytes, &len);

	if (r)
		return r == -ENOMEM ? r : 0;
	f.vaddr = c->vaddr;
	f.data = (Elf_Data){
		.d_buf = bytes, .d_size = len, .d_type = ELF_T_BYTE, .d_version = EV_CURRENT};
	/* -1: an unknown entry; the next follows it */
	while (!r && at < len) {
		int got = dwarf_next_cfi(ident, &f.data, eh, at, &next, &entry);

		if (got == 1 || next == (Dwarf_Off)-1 || next <= at)
			break;
		if (!got && !dwarf_cfi_cie_p(&entry))
			r = add_fde(all, &f, ident, &entry.fde);
		at = next;
	}
	free(bytes);
	return r;
}

int fdes_add(struct fdes *all, const struct source *src)
{
	int r = add_section(all, src, ".eh_frame", true);

	return r ? r : add_section(all, src, ".debug_frame", false);
}

static int compare(const void *a, const void *b)
{
	const struct fde *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

void fdes_sort(struct fdes *f)
{
	size_t n = 0;

	if (!f->n)
		return;
	qsort(f->p, f->n, sizeof(*f->p), compare);
	/* removes overlaps: of equal starts the longest is kept, and each ends at the next start */
	for (size_t i = 1; i < f->n; i++) {
		if (f->p[i].start == f->p[n].start) {
			f->p[n] = f->p[i];
			continue;
		}
		if (f->p[n].end > f->p[i].start)
			f->p[n].end = f->p[i].start;
		f->p[++n] = f->p[i];
	}
	f->n = n + 1;
}

void fdes_fini(struct fdes *f)
{
	free(f->p);
	*f = (struct fdes){0};
}

/* Functions that start at or before addr. */
static size_t count_before(const struct fdes *f, uint64_t addr)
{
	return array_count_to(f->p, f->n, sizeof(*f->p), addr);
}

const struct fde *fdes_find(const struct fdes *f, uint64_t addr)
{
	size_t n = count_before(f, addr);

	return n && addr < f->p[n - 1].end ? &f->p[n - 1] : NULL;
}

uint64_t fdes_gap(const struct fdes *f, uint64_t addr)
{
	size_t n = count_before(f, addr);

	return n && f->p[n - 1].end <= addr ? f->p[n - 1].end : 0;
}

void fdes_narrow(const struct fdes *f, uint64_t addr, uint64_t *lo, uint64_t *hi)
{
	size_t n = count_before(f, addr);

	for (size_t i = n ? n - 1 : 0; i < f->n && i <= n; i++) {
		ranges_narrow(f->p[i].start, addr, lo, hi);
		ranges_narrow(f->p[i].end, addr, lo, hi);
	}
}

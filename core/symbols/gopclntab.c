// SPDX-License-Identifier: Apache-2.0
#include "symbols/internal/gopclntab.h"

#include <errno.h>
#include <stdlib.h>

#include "base/ranges.h"
#include "symbols/internal/gotable.h"
#include "symbols/internal/source.h"

#define MAX_TABLE (1u << 30)
#define MAX_INLINED 256     /* frames at one address */
#define INLINE_TREE_DATA 3  /* index in a function's funcdata */
#define INLINE_TREE_INDEX 2 /* index in its pcdata */

/* A function's entry, of any version. */
struct go_function {
	uint64_t start, end;
	uint32_t name, pcfile, pcline, npcdata, cu, first_line, nfuncdata;
	uint64_t pcdata, funcdata; /* offsets within funcs of the two arrays; funcdata 0: none */
};

static bool part(const struct gopclntab *t, uint64_t at, uint64_t end, struct go_part *p)
{
	if (at > end || end > t->len)
		return false;
	*p = (struct go_part){t->bytes + at, end - at};
	return true;
}

/* Before 1.16, names and programs are at offsets from the table's start. */
static int read_header_12(struct gopclntab *t, const struct go_part *all)
{
	uint64_t files;
	uint32_t at;

	if (!go_word(t, all, 8, &t->nfunc) || !part(t, 8 + t->pointer, t->len, &t->funcs))
		return -EBADMSG;
	if (__builtin_mul_overflow(t->nfunc, 2 * t->pointer, &files) ||
	    !go_u32(&t->funcs, files + t->pointer, &at) || !part(t, at, t->len, &t->files))
		return -EBADMSG;
	t->names = t->pcs = *all;
	if (!go_u32(&t->files, 0, &at))
		return -EBADMSG;
	t->nfile = at;
	return 0;
}

static int read_header(struct gopclntab *t, const struct go_part *all)
{
	uint64_t at[5], i = 8;

	if (!go_word(t, all, i, &t->nfunc) || !go_word(t, all, i += t->pointer, &t->nfile))
		return -EBADMSG;
	if (t->version >= GO_118 && !go_word(t, all, i += t->pointer, &t->text))
		return -EBADMSG;
	for (int k = 0; k < 5; k++)
		if (!go_word(t, all, i += t->pointer, &at[k]))
			return -EBADMSG;
	if (!part(t, at[0], t->len, &t->names) || !part(t, at[1], t->len, &t->cus) ||
	    !part(t, at[2], t->len, &t->files) || !part(t, at[3], t->len, &t->pcs) ||
	    !part(t, at[4], t->len, &t->funcs))
		return -EBADMSG;
	return 0;
}

static int parse(struct gopclntab *t)
{
	struct go_part all = {t->bytes, t->len};
	uint32_t magic;
	uint64_t table;
	int r;

	if (t->len < 16 || !go_u32(&all, 0, &magic) || t->bytes[4] || t->bytes[5])
		return -EBADMSG;
	switch (magic) {
	case 0xfffffffb:
		t->version = GO_12;
		break;
	case 0xfffffffa:
		t->version = GO_116;
		break;
	case 0xfffffff0:
		t->version = GO_118;
		break;
	case 0xfffffff1:
		t->version = GO_120;
		break;
	default:
		return -EBADMSG;
	}
	t->quantum = t->bytes[6];
	t->pointer = t->bytes[7];
	if ((t->quantum != 1 && t->quantum != 2 && t->quantum != 4) ||
	    (t->pointer != 4 && t->pointer != 8))
		return -EBADMSG;
	r = t->version == GO_12 ? read_header_12(t, &all) : read_header(t, &all);
	if (r)
		return r;
	/* pairs of (start, offset of the function's entry), then the end of the last function */
	if (__builtin_mul_overflow(t->nfunc, t->version >= GO_118 ? 8 : 2 * t->pointer, &table) ||
	    table > t->funcs.len || t->funcs.len - table < (t->version >= GO_118 ? 4 : t->pointer))
		return -EBADMSG;
	return t->nfunc ? 0 : -ENOENT;
}

/* Parses the table at offset `at` of bytes. 0: *t owns the bytes now; -EBADMSG; -ENOENT: it is
 * empty.
 */
static int parse_at(struct gopclntab *t, uint8_t *bytes, uint64_t len, uint64_t at, uint64_t vaddr)
{
	int r;

	t->bytes = bytes + at;
	t->len = len - at;
	t->vaddr = vaddr + at;
	r = parse(t);
	if (!r)
		t->section = bytes;
	return r;
}

/* Finds the table by its header in a larger section, where the linker of a cgo program may put it.
 */
static int search(struct gopclntab *t, uint8_t *bytes, uint64_t len, uint64_t vaddr)
{
	for (uint64_t at = -vaddr & 7; len >= 16 && at <= len - 16; at += 8) {
		const uint8_t *p = bytes + at;

		if ((p[0] == 0xfa || p[0] == 0xf0 || p[0] == 0xf1) && p[1] == 0xff &&
		    p[2] == 0xff && p[3] == 0xff && !p[4] && !p[5] && p[7] == 8 &&
		    !parse_at(t, bytes, len, at, vaddr))
			return 0;
	}
	return -ENOENT;
}

static int load(struct gopclntab *t, const struct source *src)
{
	static const char *const names[] = {".gopclntab", ".data.rel.ro.gopclntab", ".data.rel.ro",
					    ".rodata"};
	bool go = source_find(src, ".go.buildinfo") || source_find(src, ".note.go.buildid");
	int r = -ENOENT;

	for (size_t i = 0; r == -ENOENT && i < (go ? 4 : 2); i++) {
		char *bytes;
		size_t len;
		uint64_t vaddr;

		r = source_load(src, names[i], MAX_TABLE, &bytes, &len);
		if (r)
			continue;
		vaddr = source_find(src, names[i])->vaddr;
		r = i < 2 ? parse_at(t, (uint8_t *)bytes, len, 0, vaddr)
			  : search(t, (uint8_t *)bytes, len, vaddr);
		if (r)
			free(bytes);
	}
	return r;
}

int gopclntab_open(struct gopclntab **ret, const struct source *src)
{
	struct gopclntab *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	r = load(t, src);
	if (!r)
		r = gomodule_find(t, src);
	if (!r && t->version >= GO_118 && !t->text) {
		/* no module found: without cgo the base is the start of .text */
		const struct source_section *c = source_find(src, ".text");

		r = c ? 0 : -EBADMSG;
		t->text = c ? c->vaddr : 0;
	}
	if (r)
		gopclntab_close(t);
	else
		*ret = t;
	return r;
}

void gopclntab_close(struct gopclntab *t)
{
	if (!t)
		return;
	free(t->section);
	free(t->funcdata);
	free(t);
}

/* Start of function i and offset of its entry. i == nfunc: the end of the last function. */
static bool table_entry(const struct gopclntab *t, uint64_t i, uint64_t *start, uint64_t *entry)
{
	uint32_t a, b = 0;
	uint64_t word = t->pointer;

	if (t->version >= GO_118) {
		if (!go_u32(&t->funcs, i * 8, &a) ||
		    (i < t->nfunc && !go_u32(&t->funcs, i * 8 + 4, &b)))
			return false;
		*start = t->text + a;
		*entry = b;
		return true;
	}
	*entry = 0;
	return go_word(t, &t->funcs, i * 2 * word, start) &&
	       (i == t->nfunc || go_word(t, &t->funcs, (i * 2 + 1) * word, entry));
}

/* Fields of a function's entry at `at`. */
static bool read_function(const struct gopclntab *t, uint64_t at, struct go_function *f)
{
	const struct go_part *p = t->version == GO_12 ? &t->pcs
						      : &t->funcs; /* the complete table */
	uint64_t i = at + (t->version >= GO_118 ? 4 : t->pointer); /* after its start */
	uint32_t last;

	/* name, args, deferreturn or frame, pcsp, pcfile, pcln, npcdata */
	if (!go_u32(p, i, &f->name) || !go_u32(p, i + 16, &f->pcfile) ||
	    !go_u32(p, i + 20, &f->pcline) || !go_u32(p, i + 24, &f->npcdata))
		return false;
	i += 28;
	if (t->version >= GO_116) {
		if (!go_u32(p, i, &f->cu))
			return false;
		i += 4;
	}
	if (t->version >= GO_120) {
		if (!go_u32(p, i, &f->first_line))
			return false;
		i += 4;
	}
	if (!go_u32(p, i, &last))
		return false;
	f->nfuncdata = last >> 24;
	f->pcdata = i + 4;
	if (f->npcdata > 64)
		return false;
	f->funcdata = t->version >= GO_118 ? f->pcdata + 4ull * f->npcdata : 0;
	return true;
}

/* The function that holds addr. */
static bool find_function(const struct gopclntab *t, uint64_t addr, struct go_function *f)
{
	uint64_t lo = 0, hi = t->nfunc, start, entry;

	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2;

		if (!table_entry(t, mid, &start, &entry))
			return false;
		if (start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	*f = (struct go_function){0};
	if (!lo || !table_entry(t, lo - 1, &f->start, &entry))
		return false;
	if (!table_entry(t, lo, &f->end, &start) || addr >= f->end)
		return false;
	return read_function(t, entry, f);
}

static bool uvarint(const struct go_part *p, uint64_t *at, uint32_t *v)
{
	*v = 0;
	for (uint32_t shift = 0; shift < 35; shift += 7) {
		uint8_t b;

		if (*at >= p->len)
			return false;
		b = p->p[(*at)++];
		*v |= (uint32_t)(b & 0x7f) << (shift & 31);
		if (!(b & 0x80))
			return true;
	}
	return false;
}

static void narrow(struct symbols_span *span, uint64_t edge, uint64_t addr)
{
	ranges_narrow(edge, addr, &span->lo, &span->hi);
}

static void narrow_to(struct symbols_span *span, uint64_t addr)
{
	narrow(span, addr, addr);
	narrow(span, addr + 1, addr);
}

/* The value that a program of (value delta, pc delta) pairs has at addr; -1: none. Narrows *span to
 * addresses with the same value. */
static int32_t value_at(const struct gopclntab *t, const struct go_function *f, uint32_t program,
			uint64_t addr, struct symbols_span *span)
{
	uint64_t pc = f->start, at = program, from;
	uint32_t value = (uint32_t)-1, delta;

	if (!program)
		return -1;
	for (bool first = true;; first = false) {
		if (!uvarint(&t->pcs, &at, &delta) || (!delta && !first))
			break;
		value += delta & 1 ? ~(delta >> 1) : delta >> 1;
		if (!uvarint(&t->pcs, &at, &delta))
			break;
		from = pc;
		pc += (uint64_t)delta * t->quantum;
		if (addr < pc) {
			narrow(span, from, addr);
			narrow(span, pc, addr);
			return (int32_t)value;
		}
		if (pc >= f->end)
			break;
	}
	narrow_to(span, addr);
	return -1;
}

/* The text at an offset of a part. A NUL follows the section, so that it has an end. */
static const char *text_at(const struct go_part *p, uint64_t at)
{
	return at < p->len ? (const char *)p->p + at : "";
}

static const char *file_of(const struct gopclntab *t, const struct go_function *f, int32_t n)
{
	uint32_t at;

	if (n < 0)
		return "";
	if (t->version == GO_12) {
		if (!n || (uint64_t)n >= t->nfile || !go_u32(&t->files, 4ull * (uint32_t)n, &at))
			return "";
		return text_at(&t->names, at);
	}
	if (!go_u32(&t->cus, 4 * ((uint64_t)f->cu + (uint32_t)n), &at) || at == UINT32_MAX)
		return "";
	return text_at(&t->files, at);
}

/* One entry of a function's inline tree. */
struct inlined {
	uint32_t name, first_line, parent_pc;
};

static bool inlined_at(const struct gopclntab *t, uint32_t tree, int32_t index, struct inlined *in)
{
	bool old = t->version == GO_118;
	struct go_part p = {t->funcdata, t->nfuncdata};
	uint64_t at = tree + (uint64_t)(uint32_t)index * (old ? 20 : 16);

	in->first_line = 0;
	return go_u32(&p, at + (old ? 12 : 4), &in->name) &&
	       go_u32(&p, at + (old ? 16 : 8), &in->parent_pc) &&
	       (old || go_u32(&p, at + 12, &in->first_line));
}

/* Offsets of the function's inline tree and of the program of indexes in it. */
static bool inline_tree(const struct gopclntab *t, const struct go_function *f, uint32_t *tree,
			uint32_t *program)
{
	return t->funcdata && f->funcdata && f->npcdata > INLINE_TREE_INDEX &&
	       f->nfuncdata > INLINE_TREE_DATA &&
	       go_u32(&t->funcs, f->pcdata + 4 * INLINE_TREE_INDEX, program) &&
	       go_u32(&t->funcs, f->funcdata + 4 * INLINE_TREE_DATA, tree) && *tree != UINT32_MAX;
}

static uint32_t line(int32_t n)
{
	return n > 0 ? (uint32_t)n : 0;
}

/* Sets the place in the file that addr is at. */
static void set_place(const struct gopclntab *t, const struct go_function *f, uint64_t addr,
		      struct symbols_span *span, struct symbols_frame *frame)
{
	frame->file = file_of(t, f, value_at(t, f, f->pcfile, addr, span));
	frame->line = line(value_at(t, f, f->pcline, addr, span));
}

uint32_t gopclntab_lookup(const struct gopclntab *t, uint64_t addr, symbols_each *each, void *arg,
			  struct symbols_span *span)
{
	struct symbols_span callers = {.hi = UINT64_MAX}, *of = span;
	struct symbols_frame frame = {0};
	struct go_function f;
	uint32_t n = 0, tree, program;

	if (!find_function(t, addr, &f) || !text_at(&t->names, f.name)[0])
		return 0;
	narrow(span, f.start, addr);
	narrow(span, f.end, addr);
	if (inline_tree(t, &f, &tree, &program)) {
		while (n < MAX_INLINED) {
			int32_t index = value_at(t, &f, program, addr, of);
			struct inlined in;
			uint64_t call;

			if (index < 0 || !inlined_at(t, tree, index, &in))
				break;
			frame.name = frame.system_name = text_at(&t->names, in.name);
			set_place(t, &f, addr, of, &frame);
			frame.start_line = line((int32_t)in.first_line);
			frame.flags = SYMBOLS_INLINED;
			each(arg, &frame);
			n++;
			/* an instruction of the caller at the place of the call */
			call = f.start + in.parent_pc;
			narrow(of, call, addr);
			narrow(of, call + 1, addr);
			if (in.parent_pc >= f.end - f.start || call == addr)
				break;
			addr = call;
			of = &callers; /* the same for all of the span */
		}
	}
	frame.name = frame.system_name = text_at(&t->names, f.name);
	set_place(t, &f, addr, of, &frame);
	frame.start_line = line((int32_t)f.first_line);
	frame.flags = 0;
	each(arg, &frame);
	return n + 1;
}

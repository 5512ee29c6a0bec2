// SPDX-License-Identifier: Apache-2.0
/* The order of the sources: Go's table; DWARF, with names of the symbol tables; the symbol tables
 * alone; a stub. */
#include "symbols/symbols.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/ranges.h"
#include "symbols/internal/debuglink.h"
#include "demangle/demangle.h"
#include "symbols/internal/dwarf.h"
#include "symbols/internal/fde.h"
#include "symbols/internal/gopclntab.h"
#include "symbols/internal/plt.h"
#include "symbols/internal/source.h"
#include "symbols/internal/symtab.h"

#define MAX_TEXT 65536 /* of one name or path */

struct symbols {
	struct source *file, *debug, *alt;
	struct symtab symtab;
	struct fdes fdes;
	struct gopclntab *go;
	struct dwarf *dwarf;
	struct demangler *demangler;
	struct symbols_quality quality;
	struct buf notes;
	bool have_fdes;
	bool dwarf_pending; /* DWARF is to be opened when an address first needs it */
	bool lacking;       /* there was no memory for DWARF */
	char *missing_alt;  /* name of the dwz file that was not passed; owned */
	uint8_t missing_id[64];
	size_t missing_id_len;
};

static const char *reason(int err)
{
	switch (err) {
	case -ENOMEM:
	case -EFBIG:
		return "is too large";
	case -ENOTSUP:
		return "is compressed in a way that is not known";
	case -EIO:
		return "could not be read completely";
	default:
		return "is damaged";
	}
}

static void note(struct symbols *s, const char *what, const char *why)
{
	buf_printf(&s->notes, "%s%s %s", s->notes.len ? "\n" : "", what, why);
}

static int load_fdes(struct symbols *s)
{
	int r;

	if (s->have_fdes)
		return 0;
	s->have_fdes = true;
	r = fdes_add(&s->fdes, s->file);
	if (!r && s->debug)
		r = fdes_add(&s->fdes, s->debug);
	fdes_sort(&s->fdes);
	return r;
}

/* A missing or unreadable table is no error, as other sources may have the names. */
static int use_table(struct symbols *s, int r, bool *found, const char *what)
{
	if (r == -ENOMEM)
		return r;
	if (r > 0)
		*found = true;
	else if (r < 0 && r != -ENOENT)
		note(s, what, reason(r));
	return 0;
}

static int load_tables(struct symbols *s)
{
	int r = use_table(s, symtab_add(&s->symtab, s->file, ".symtab", ".strtab"),
			  &s->quality.symtab, "the symbol table");

	if (!r && s->debug)
		r = use_table(s, symtab_add(&s->symtab, s->debug, ".symtab", ".strtab"),
			      &s->quality.symtab, "the debug file's symbol table");
	if (!r)
		r = use_table(s, symtab_add(&s->symtab, s->file, ".dynsym", ".dynstr"),
			      &s->quality.dynsym, "the dynamic symbol table");
	if (!r && !s->quality.symtab)
		r = use_table(s, symtab_add_debugdata(&s->symtab, s->file), &s->quality.debugdata,
			      "the symbol table in .gnu_debugdata");
	if (!r)
		r = plt_add(&s->symtab, s->file);
	if (!r && symtab_has_sizeless(&s->symtab))
		r = load_fdes(s);
	return r ? r : symtab_finish(&s->symtab, s->have_fdes ? &s->fdes : NULL);
}

static int open_debug(struct symbols *s, int fd)
{
	int r = source_open(&s->debug, fd);

	if (r == -ENOMEM)
		return r;
	if (!r && debuglink_matches(s->file, s->debug) == 1)
		return 0;
	note(s, "the debug file", r ? "is no ELF file" : "is of another build");
	source_close(s->debug);
	s->debug = NULL;
	return 0;
}

/* The dwz file of the debug file or else of the file. Without it, names of inlined calls are
 * missing. */
static int open_alt(struct symbols *s, int fd)
{
	bool in_debug = s->debug && source_find(s->debug, ".debug_info");
	const struct source *by = in_debug ? s->debug : s->file;
	int r;

	if (fd < 0) {
		if (source_find(by, ".gnu_debugaltlink"))
			note(s, "the dwz debug file", "is missing");
		r = debugaltlink_read(by, &s->missing_alt, s->missing_id, &s->missing_id_len);
		return r == -ENOMEM ? r : 0;
	}
	r = source_open(&s->alt, fd);
	if (r == -ENOMEM)
		return r;
	if (!r && debugaltlink_matches(by, s->alt) == 1)
		return 0;
	note(s, "the dwz debug file", r ? "is no ELF file" : "is of another build");
	source_close(s->alt);
	s->alt = NULL;
	return 0;
}

static int open_go(struct symbols *s)
{
	int r = gopclntab_open(&s->go, s->file);

	if (r == -ENOMEM)
		return r;
	s->quality.gopclntab = !r;
	if (r && r != -ENOENT)
		note(s, "Go's line table", reason(r));
	return 0;
}

int symbols_open(struct symbols **ret, const struct symbols_files *files, bool inlines)
{
	struct symbols *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	r = demangler_new(&s->demangler);
	if (!r)
		r = source_open(&s->file, files->fd);
	if (!r && files->debug_fd >= 0)
		r = open_debug(s, files->debug_fd);
	if (!r && inlines)
		r = open_alt(s, files->alt_fd);
	if (!r)
		r = open_go(s);
	if (!r)
		r = load_tables(s);
	if (r) {
		symbols_close(s);
		return r;
	}
	s->dwarf_pending = inlines;
	s->quality.dwarf = inlines && ((s->debug && source_find(s->debug, ".debug_info")) ||
				       source_find(s->file, ".debug_info"));
	*ret = s;
	return 0;
}

void symbols_close(struct symbols *s)
{
	if (!s)
		return;
	dwarf_close(s->dwarf);
	gopclntab_close(s->go);
	demangler_free(s->demangler);
	symtab_fini(&s->symtab);
	fdes_fini(&s->fdes);
	source_close(s->alt);
	source_close(s->debug);
	source_close(s->file);
	buf_fini(&s->notes);
	free(s->missing_alt);
	free(s);
}

const char *symbols_missing_alt(const struct symbols *s, const uint8_t **build_id, uint32_t *n)
{
	*build_id = s->missing_id;
	*n = (uint32_t)s->missing_id_len;
	return s->missing_alt;
}

/* Opens DWARF when an address first needs it; addresses of Go programs rarely do. */
static struct dwarf *get_dwarf(struct symbols *s)
{
	const struct source *of = s->file;
	int r;

	if (!s->dwarf_pending)
		return s->dwarf;
	s->dwarf_pending = false;
	if (s->debug && source_find(s->debug, ".debug_info"))
		of = s->debug;
	r = dwarf_open(&s->dwarf, of, s->file, s->alt);
	s->quality.dwarf = !r;
	s->lacking = r == -ENOMEM;
	if (r && r != -ENOENT)
		note(s, "the DWARF debug information", reason(r));
	if (!r && dwarf_is_split(s->dwarf))
		note(s, "the split DWARF (.dwo, .dwp)", "is not read: no inlined functions");
	return s->dwarf;
}

struct lookup {
	struct symbols *s;
	symbols_each *each;
	void *arg;
	const struct symtab_entry *symbol; /* of the address; NULL: none */
	const char *stub;
};

/* Printable UTF-8 of bounded length. */
static const char *clean(struct symbols *s, const char *text)
{
	if (strnlen(text, MAX_TEXT) == MAX_TEXT)
		return "(a name without end)";
	return demangle_clean(s->demangler, text);
}

static void each_go(void *arg, const struct symbols_frame *f)
{
	struct lookup *l = arg;
	struct symbols_frame out = *f;

	out.name = out.system_name = clean(l->s, f->name);
	out.file = clean(l->s, f->file);
	l->each(l->arg, &out);
}

/* Whether name is "scopes::symbol". */
static bool ends_with_scope(const char *name, const char *symbol)
{
	size_t n = strlen(name), m = strlen(symbol);

	return n > m + 2 && !strcmp(name + n - m, symbol) && !strncmp(name + n - m - 2, "::", 2);
}

/* Sets both names. DWARF has no linkage name for C and for static functions of C++; the symbol
 * table may have it. */
static void name_frame(struct lookup *l, struct symbols_frame *f)
{
	struct symbols *s = l->s;
	const char *symbol = l->symbol ? symtab_name(&s->symtab, l->symbol) : NULL;
	bool outer = !(f->flags & SYMBOLS_INLINED);

	if (!f->system_name && outer && symbol && (!f->name || !strncmp(symbol, "_Z", 2)))
		f->system_name = symbol;
	if (!f->system_name && outer && symbol && ends_with_scope(f->name, symbol)) {
		/* extern "C" in a namespace */
		f->name = clean(s, f->name);
		f->system_name = clean(s, symbol);
	} else if (f->system_name) {
		if (strnlen(f->system_name, MAX_TEXT) == MAX_TEXT)
			f->system_name = "(a name without end)";
		f->name = demangle(s->demangler, f->system_name);
		f->system_name = clean(s, f->system_name);
	} else if (f->name) {
		f->name = f->system_name = clean(s, f->name);
	} else if (!outer) {
		f->name = f->system_name = "(inlined, without a name)";
	} else {
		f->name = f->system_name = l->stub;
		f->flags |= SYMBOLS_STUB;
	}
}

static void each_dwarf(void *arg, const struct symbols_frame *f)
{
	struct lookup *l = arg;
	struct symbols_frame out = *f;

	name_frame(l, &out);
	out.file = clean(l->s, f->file);
	l->each(l->arg, &out);
}

static struct symbols_span alone(uint64_t vaddr)
{
	return (struct symbols_span){vaddr, vaddr < UINT64_MAX ? vaddr + 1 : vaddr, .alone = true};
}

/* Where the gap begins that contains addr, which no symbol and no FDE covers: at the end of the
 * last symbol or FDE before it, or at the start of its section, whichever is highest. 0: unknown.
 * Narrows *span. */
static uint64_t gap_start(const struct symbols *s, uint64_t addr, struct symbols_span *span)
{
	uint64_t start = fdes_gap(&s->fdes, addr), gap = symtab_gap(&s->symtab, addr), end;
	const struct source_section *c;

	start = gap > start ? gap : start;
	for (size_t i = 0; (c = source_section(s->file, i)); i++) {
		if (!(c->flags & SHF_ALLOC))
			continue;
		if (__builtin_add_overflow(c->vaddr, c->size, &end))
			end = UINT64_MAX;
		ranges_narrow(c->vaddr, addr, &span->lo, &span->hi);
		ranges_narrow(end, addr, &span->lo, &span->hi);
		if (c->vaddr <= addr && addr < end && c->vaddr > start)
			start = c->vaddr;
	}
	return start;
}

/* Writes "+0x" and the start of addr's function by its FDE, so that all addresses of a stripped
 * function have one name; without an FDE the start of the gap. Narrows *span. */
static void make_stub(struct symbols *s, uint64_t addr, char stub[32], struct symbols_span *span)
{
	const struct fde *f;
	uint64_t start;

	load_fdes(s);
	f = fdes_find(&s->fdes, addr);
	fdes_narrow(&s->fdes, addr, &span->lo, &span->hi);
	start = f ? f->start : gap_start(s, addr, span);
	if (!start) {
		*span = alone(addr);
		start = addr;
	}
	snprintf(stub, 32, "+0x%llx", (unsigned long long)start);
}

/* The function that begins at addr + 1, if no symbol and no other FDE covers addr: a return address
 * that no call has pushed may be where a function begins. The FDE of a return from signal handlers
 * begins at addr, one byte before the function; V8's functions, in which it makes frames to
 * continue when it deoptimizes, have none. */
static const struct symtab_entry *returned_to(struct symbols *s, uint64_t addr)
{
	const struct symtab_entry *e = symtab_behind(&s->symtab, addr);
	const struct fde *f;

	if (!e)
		return NULL;
	load_fdes(s);
	f = fdes_find(&s->fdes, addr + 1);
	if (f && addr + 1 - f->start > 1)
		return NULL;
	return (f && f->start == addr) || !fdes_find(&s->fdes, addr) ? e : NULL;
}

/* Names an address without symbol: returns the function that begins at addr + 1, or NULL and a
 * stub.
 */
static const struct symtab_entry *name_gap(struct symbols *s, uint64_t addr, char stub[32],
					   struct symbols_span *span)
{
	const struct symtab_entry *e = returned_to(s, addr);

	if (e) {
		*span = (struct symbols_span){.lo = addr, .hi = addr + 1};
		return e;
	}
	make_stub(s, addr, stub, span);
	if (span->hi - 1 > addr && returned_to(s, span->hi - 1))
		span->hi--;
	return NULL;
}

static int look_up(struct symbols *s, uint64_t vaddr, symbols_each *each, void *arg,
		   struct symbols_span *span)
{
	struct lookup l = {.s = s, .each = each, .arg = arg};
	struct symbols_span beside_go = {.hi = UINT64_MAX};
	struct symbols_frame f = {.file = ""};
	struct dwarf *dwarf;
	char stub[32] = "";

	if (s->go && gopclntab_lookup(s->go, vaddr, each_go, &l, span))
		return 0;
	if (s->go) { /* its table may have the next address */
		*span = alone(vaddr);
		span = &beside_go;
	}
	l.symbol = symtab_find(&s->symtab, vaddr);
	segments_narrow(s->symtab.segments, s->symtab.nsegments, vaddr, &span->lo, &span->hi);
	if (!l.symbol)
		l.symbol = name_gap(s, vaddr, stub, span);
	l.stub = stub;
	dwarf = get_dwarf(s);
	if (dwarf && dwarf_lookup(dwarf, vaddr, each_dwarf, &l, span))
		return 0;
	name_frame(&l, &f);
	each(arg, &f);
	return 0;
}

int symbols_lookup(struct symbols *s, uint64_t vaddr, symbols_each *each, void *arg)
{
	struct symbols_span span = {.hi = UINT64_MAX};

	return look_up(s, vaddr, each, arg, &span);
}

int symbols_lookup_span(struct symbols *s, uint64_t vaddr, symbols_each *each, void *arg,
			struct symbols_span *span)
{
	int r;

	*span = (struct symbols_span){.hi = UINT64_MAX};
	r = look_up(s, vaddr, each, arg, span);
	if (r || s->lacking || vaddr < span->lo || vaddr >= span->hi)
		*span = alone(vaddr);
	return r;
}

bool symbols_code(const struct symbols *s, size_t i, struct symbols_span *span)
{
	const struct source_section *c;

	for (size_t at = 0; (c = source_section(s->file, at)); at++) {
		if (!(c->flags & SHF_ALLOC) || !(c->flags & SHF_EXECINSTR) || i--)
			continue;
		*span = (struct symbols_span){.lo = c->vaddr};
		if (__builtin_add_overflow(c->vaddr, c->size, &span->hi))
			span->hi = c->vaddr;
		return true;
	}
	return false;
}

bool symbols_function(const struct symbols *s, uint64_t vaddr, struct symbols_span *span)
{
	const struct symtab_entry *e = symtab_find(&s->symtab, vaddr);

	if (!e || __builtin_add_overflow(e->start, e->size, &span->hi) ||
	    e->size <= vaddr - e->start)
		return false;
	span->lo = e->start;
	return true;
}

bool symbols_next(const struct symbols *s, uint64_t vaddr, struct symbols_span *span)
{
	const struct segment *first = s->symtab.segments, *end = first + s->symtab.nsegments;
	const struct segment *at = segments_find(first, s->symtab.nsegments, vaddr);

	for (at = at ? at : first; at + 1 < end; at++)
		if (at->id != RANGES_NONE && at[1].lo > vaddr) {
			*span = (struct symbols_span){.lo = at->lo > vaddr ? at->lo : vaddr,
						      .hi = at[1].lo};
			return true;
		}
	return false;
}

void symbols_quality(const struct symbols *s, struct symbols_quality *q)
{
	*q = s->quality;
	q->note = "";
	if (s->notes.len) {
		/* terminates the text without counting the NUL */
		struct buf *notes = (struct buf *)(uintptr_t)&s->notes;

		if (!buf_add(notes, "", 1))
			q->note = notes->p;
		notes->len -= !notes->error;
	}
}

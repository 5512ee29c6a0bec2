// SPDX-License-Identifier: Apache-2.0
/* The index from address to unit, and lookups. */
#include "symbols/internal/dwarf.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "symbols/internal/dwarf_image.h"
#include "symbols/internal/dwarf_name.h"
#include "symbols/internal/dwarf_unit.h"
#include "symbols/internal/source.h"

#define MAX_UNITS (1u << 20)
#define MAX_FRAMES 512         /* of one address */
#define MAX_LOADED (16u << 20) /* bytes of loaded units; only dwarf_end() frees libdw's part */

struct dwarf {
	struct dwarf_image image, alt_image;
	Dwarf *dw, *alt;
	const struct source *code;
	struct unit *units;
	size_t n, cap;
	struct segment *index; /* id: a unit */
	size_t nindex;
	size_t loaded; /* bytes of loaded units */
	bool split;    /* functions of a unit are in another file */
	struct dwarf_names names;
};

static int begin(struct dwarf *d)
{
	d->dw = dwarf_begin_elf(d->image.elf, DWARF_C_READ, NULL);
	if (!d->dw)
		return -EBADMSG;
	if (d->alt)
		dwarf_setalt(d->dw, d->alt);
	return 0;
}

/* Closes and reopens libdw, which keeps the lines and abbreviations of every unit that it read. */
static int recycle(struct dwarf *d)
{
	for (size_t i = 0; i < d->n; i++)
		unit_unload(&d->units[i]);
	dwarf_end(d->dw);
	d->dw = NULL;
	d->loaded = 0;
	return begin(d);
}

static struct unit *add_unit(struct dwarf *d)
{
	struct unit *u = ARRAY_ADD(d->units, d->n, d->cap);

	if (u)
		*u = (struct unit){0};
	return u;
}

/* The ranges of a unit's functions, for units without ranges (some assemblers, old compilers). */
static int ranges_of_functions(struct dwarf *d, struct unit *u, struct range_list *l)
{
	size_t before = u->nsegments;
	int r = unit_load(u, d->dw, d->code);

	if (r || u->nsegments == before)
		return r;
	for (size_t i = 0; i + 1 < u->nsegments; i++) {
		if (u->segments[i].id == RANGES_NONE)
			continue;
		r = range_list_add(l, (struct range){u->segments[i].lo, u->segments[i + 1].lo,
						     (uint32_t)(u - d->units), 0});
		if (r)
			return r;
	}
	return 0;
}

static int index_unit(struct dwarf *d, Dwarf_Off die_at, Dwarf_Off end, struct range_list *l)
{
	size_t before = l->n;
	struct unit *u;
	Dwarf_Die die;
	int r;

	if (!dwarf_offdie(d->dw, die_at, &die))
		return 0;
	if (dwarf_tag(&die) != DW_TAG_compile_unit && dwarf_tag(&die) != DW_TAG_skeleton_unit)
		return 0;
	u = add_unit(d);
	if (!u)
		return -ENOMEM;
	u->die = die_at;
	u->end = end;
	if (dwarf_hasattr(&die, DW_AT_dwo_name) || dwarf_hasattr(&die, DW_AT_GNU_dwo_name))
		d->split = true;
	r = ranges_of_die(l, &die, d->code, (uint32_t)(d->n - 1), 0);
	if (!r && l->n == before && !dwarf_hasattr(&die, DW_AT_ranges) &&
	    !dwarf_hasattr(&die, DW_AT_high_pc))
		r = ranges_of_functions(d, u, l);
	return r;
}

static int make_index(struct dwarf *d)
{
	struct range_list l = {0};
	Dwarf_Off at = 0, next;
	size_t header;
	int r = 0;

	while (!r && d->n < MAX_UNITS &&
	       !dwarf_next_unit(d->dw, at, &next, &header, NULL, NULL, NULL, NULL, NULL, NULL)) {
		if (next <= at)
			break;
		r = index_unit(d, at + header, next, &l);
		at = next;
	}
	if (r != -ENOMEM)
		r = ranges_flatten(l.p, l.n, &d->index, &d->nindex);
	free(l.p);
	return r;
}

int dwarf_open(struct dwarf **ret, const struct source *file, const struct source *code,
	       const struct source *alt)
{
	struct dwarf *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	d->code = code;
	r = dwarf_names_init(&d->names);
	if (r)
		goto out;
	r = dwarf_image_make(&d->image, file);
	if (r)
		goto out;
	if (alt && !dwarf_image_make(&d->alt_image, alt))
		d->alt = dwarf_begin_elf(d->alt_image.elf, DWARF_C_READ, NULL);
	r = begin(d);
	if (!r)
		r = make_index(d);
	if (!r)
		r = recycle(d);
out:
	if (r)
		dwarf_close(d);
	else
		*ret = d;
	return r;
}

bool dwarf_is_split(const struct dwarf *d)
{
	return d->split;
}

void dwarf_close(struct dwarf *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->n; i++)
		unit_unload(&d->units[i]);
	free(d->units);
	free(d->index);
	if (d->dw)
		dwarf_end(d->dw);
	if (d->alt)
		dwarf_end(d->alt);
	dwarf_image_fini(&d->image);
	dwarf_image_fini(&d->alt_image);
	dwarf_names_fini(&d->names);
	free(d);
}

/* The unit of addr, loaded. Narrows *span. NULL: there is none; or it cannot be loaded, and *span
 * is addr alone. */
static struct unit *find_unit(struct dwarf *d, uint64_t addr, struct symbols_span *span)
{
	const struct segment *s = segments_find(d->index, d->nindex, addr);
	struct unit *u;

	segments_narrow(d->index, d->nindex, addr, &span->lo, &span->hi);
	if (!s || s->id == RANGES_NONE)
		return NULL;
	u = &d->units[s->id];
	if (u->loaded && !u->failed)
		return u;
	if (!u->loaded && d->dw && (d->loaded <= MAX_LOADED || !recycle(d)) &&
	    !unit_load(u, d->dw, d->code)) {
		d->loaded += unit_bytes(u);
		return u;
	}
	*span = (struct symbols_span){addr, addr + 1, .alone = true};
	return NULL;
}

/* The path of file i. libdw gives paths of DWARF 5 relative to the compiler's folder. */
static const char *file_name(struct dwarf *d, const struct unit *u, uint32_t i)
{
	const char *name = u->files && i < u->nfiles ? dwarf_filesrc(u->files, i, NULL, NULL)
						     : NULL;

	return dwarf_names_path(&d->names, u->dir, name);
}

static void first_position(struct dwarf *d, struct symbols_frame *f, const struct unit *u,
			   uint64_t addr, struct symbols_span *span)
{
	Dwarf_Line *line = unit_line(u, addr, &span->lo, &span->hi);
	int n;

	f->file = dwarf_names_path(&d->names, u->dir,
				   line ? dwarf_linesrc(line, NULL, NULL) : NULL);
	f->line = line && !dwarf_lineno(line, &n) && n > 0 ? (uint32_t)n : 0;
	f->column = line && !dwarf_linecol(line, &n) && n > 0 ? (uint32_t)n : 0;
}

uint32_t dwarf_lookup(struct dwarf *d, uint64_t addr, symbols_each *each, void *arg,
		      struct symbols_span *span)
{
	struct unit *u = find_unit(d, addr, span);
	struct symbols_frame f = {0};
	const struct segment *s;
	uint32_t n = 0;

	if (!u)
		return 0;
	segments_narrow(u->segments, u->nsegments, addr, &span->lo, &span->hi);
	first_position(d, &f, u, addr, span);
	s = segments_find(u->segments, u->nsegments, addr);
	if (!s || s->id == RANGES_NONE) {
		if (!f.line)
			return 0;
		each(arg, &f);
		return 1;
	}
	for (uint32_t i = s->id; i != RANGES_NONE && n < MAX_FRAMES; n++) {
		struct unit_node *node = &u->nodes[i];

		dwarf_names_resolve(&d->names, d->dw, node, u->qualify);
		f.name = node->name;
		f.system_name = node->linkage;
		f.start_line = node->start_line;
		f.flags = node->inlined ? SYMBOLS_INLINED : 0;
		each(arg, &f);
		f.file = file_name(d, u, node->call_file);
		f.line = node->call_line;
		f.column = node->call_column;
		i = node->inlined ? node->parent : RANGES_NONE;
	}
	return n;
}

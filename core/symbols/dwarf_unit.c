// SPDX-License-Identifier: Apache-2.0
#include "symbols/internal/dwarf_unit.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "symbols/internal/source.h"

#define MAX_RANGES (4u << 20)
#define MAX_DEPTH 512
#define MAX_CHAIN (1u << 20) /* entries of one DIE's range list */

int range_list_add(struct range_list *l, struct range r)
{
	struct range *to = ARRAY_ADD(l->p, l->n, l->cap);

	if (!to)
		return -ENOMEM;
	*to = r;
	return 0;
}

int ranges_of_die(struct range_list *l, Dwarf_Die *die, const struct source *code, uint32_t id,
		  uint32_t rank)
{
	Dwarf_Addr base, lo, hi;
	ptrdiff_t at = 0;
	uint32_t seen = 0;

	while ((at = dwarf_ranges(die, at, &base, &lo, &hi)) > 0) {
		if (++seen > MAX_CHAIN)
			return -EFBIG;
		/* code that the linker dropped is at 0 or beyond the end */
		if (lo >= hi || !source_is_code(code, lo))
			continue;
		if (l->n && l->p[l->n - 1].id == id && l->p[l->n - 1].hi == lo) {
			l->p[l->n - 1].hi = hi;
			continue;
		}
		if (l->n >= MAX_RANGES)
			return -EFBIG;
		if (range_list_add(l, (struct range){lo, hi, id, rank}))
			return -ENOMEM;
	}
	return 0;
}

struct level {
	Dwarf_Die die; /* the parent */
	uint32_t node; /* the node that its children are inlined into */
};

/* A walk over the DIEs of a unit that can contain code, without recursion. */
struct die_walk {
	struct unit *unit;
	const struct source *code;
	struct range_list ranges;
	Dwarf_Die die;
	unsigned char *end; /* of the unit's bytes */
	uint32_t node, depth;
	struct level *levels; /* MAX_DEPTH of them */
};

static uint32_t number(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attr;
	Dwarf_Word v;

	return dwarf_attr(die, name, &attr) && !dwarf_formudata(&attr, &v) && v <= UINT32_MAX
		       ? (uint32_t)v
		       : 0;
}

/* Adds a node for a function or an inlined call, if it has code. */
static int add_node(struct die_walk *w, bool inlined, uint32_t *node)
{
	struct unit *u = w->unit;
	struct unit_node *n;
	size_t before = w->ranges.n;
	int r = ranges_of_die(&w->ranges, &w->die, w->code, (uint32_t)u->n, w->depth);

	if (r || w->ranges.n == before)
		return r;
	n = ARRAY_ADD(u->nodes, u->n, u->cap);
	if (!n)
		return -ENOMEM;
	*n = (struct unit_node){.die = dwarf_dieoffset(&w->die),
				.parent = inlined ? w->node : RANGES_NONE,
				.inlined = inlined && w->node != RANGES_NONE};
	if (n->inlined) {
		n->call_file = number(&w->die, DW_AT_call_file);
		n->call_line = number(&w->die, DW_AT_call_line);
		n->call_column = number(&w->die, DW_AT_call_column);
	}
	*node = (uint32_t)(n - u->nodes);
	return 0;
}

/* Visits one DIE. 1: its children can have code, *node is their parent; 0: they cannot; -errno. */
static int visit(struct die_walk *w, uint32_t *node)
{
	int r;

	*node = w->node;
	switch (dwarf_tag(&w->die)) {
	case DW_TAG_subprogram:
		*node = RANGES_NONE;
		r = add_node(w, false, node);
		return r ? r : 1;
	case DW_TAG_inlined_subroutine:
		r = add_node(w, true, node);
		return r ? r : 1;
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type: /* methods of a Rust enum whose variants have no data */
		return 1;
	}
	return 0;
}

/*
 * Moves to the next sibling of a parent. libdw sets `last` to the end of the children, which spares
 * another walk over them (clang writes no DW_AT_sibling); without that end dwarf_siblingof() of the
 * parent walks.
 */
static bool climb(struct die_walk *w, const Dwarf_Die *last)
{
	unsigned char *at = last->addr;

	while (w->depth) {
		struct level *l = &w->levels[--w->depth];
		Dwarf_Die next;

		w->node = w->depth ? w->levels[w->depth - 1].node : RANGES_NONE;
		if (!at) {
			int r = dwarf_siblingof(&l->die, &next);

			if (!r) {
				w->die = next;
				return true;
			}
			if (r < 0)
				return false;
			at = next.addr;
			continue;
		}
		if (++at >= w->end)
			return false;
		if (*at) {
			memset(&w->die, 0, sizeof(w->die));
			w->die.addr = at;
			w->die.cu = l->die.cu;
			return true;
		}
	}
	return false;
}

static bool step(struct die_walk *w, bool into, uint32_t node)
{
	Dwarf_Die next;
	int r;

	if (into && w->depth < MAX_DEPTH && !dwarf_child(&w->die, &next)) {
		w->levels[w->depth++] = (struct level){w->die, node};
		w->node = node;
		w->die = next;
		return true;
	}
	r = dwarf_siblingof(&w->die, &next);
	if (r < 0)
		return false;
	if (r)
		return climb(w, &next);
	w->die = next;
	return true;
}

static int load_nodes(struct unit *u, Dwarf_Die *cu, const struct source *code)
{
	struct die_walk w = {.unit = u, .code = code, .node = RANGES_NONE};
	int r = 0;

	w.levels = malloc(MAX_DEPTH * sizeof(*w.levels));
	if (!w.levels)
		return -ENOMEM;
	w.end = (unsigned char *)cu->addr + (u->end - u->die);
	if (!dwarf_child(cu, &w.die)) {
		uint32_t node;
		int into;

		do {
			into = visit(&w, &node);
			if (into < 0)
				r = into;
		} while (!r && step(&w, into > 0, node));
	}
	if (r != -ENOMEM)
		r = ranges_flatten(w.ranges.p, w.ranges.n, &u->segments, &u->nsegments);
	free(w.ranges.p);
	free(w.levels);
	return r;
}

static bool has_scopes(Dwarf_Die *cu)
{
	switch (number(cu, DW_AT_language)) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
	case 0x2b: /* C++17 */
	case 0x2e: /* C++20 */
	case DW_LANG_D:
	case DW_LANG_Rust:
		return true;
	}
	return false;
}

int unit_load(struct unit *u, Dwarf *dw, const struct source *code)
{
	Dwarf_Attribute attr;
	Dwarf_Die cu;
	int r;

	if (u->loaded)
		return 0;
	u->loaded = true;
	if (!dwarf_offdie(dw, u->die, &cu))
		return 0;
	u->qualify = has_scopes(&cu);
	u->dir = dwarf_formstring(dwarf_attr(&cu, DW_AT_comp_dir, &attr));
	if (u->dir && u->dir[0] != '/')
		u->dir = NULL;
	r = load_nodes(u, &cu, code);
	u->failed = r;
	if (r)
		return r;
	if (dwarf_getsrclines(&cu, &u->lines, &u->nlines))
		u->nlines = 0;
	if (dwarf_getsrcfiles(&cu, &u->files, &u->nfiles))
		u->nfiles = 0;
	return 0;
}

void unit_unload(struct unit *u)
{
	free(u->nodes);
	free(u->segments);
	*u = (struct unit){.die = u->die, .end = u->end};
}

size_t unit_bytes(const struct unit *u)
{
	return u->cap * sizeof(*u->nodes) + u->nsegments * sizeof(*u->segments) + u->nlines * 56 +
	       u->nfiles * 96 + 8192;
}

Dwarf_Line *unit_line(const struct unit *u, uint64_t addr, uint64_t *from, uint64_t *to)
{
	size_t lo = 0, hi = u->nlines;
	Dwarf_Line *line;
	bool end;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		Dwarf_Addr at;

		if (dwarf_lineaddr(dwarf_onesrcline(u->lines, mid), &at)) {
			*from = addr;
			*to = addr + 1;
			return NULL;
		}
		if (at <= addr) {
			lo = mid + 1;
			*from = at > *from ? at : *from;
		} else {
			hi = mid;
			*to = at < *to ? at : *to;
		}
	}
	line = lo ? dwarf_onesrcline(u->lines, lo - 1) : NULL;
	return line && !dwarf_lineendsequence(line, &end) && !end ? line : NULL;
}

// SPDX-License-Identifier: Apache-2.0
#include "symbols/internal/dwarf_name.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/internal/dwarf_unit.h"

#define MAX_SCOPES 32
#define MAX_STEPS (64u << 20) /* DIEs that all searches for scopes of a file visit */

int dwarf_names_init(struct dwarf_names *n)
{
	*n = (struct dwarf_names){.steps = MAX_STEPS};
	return dict_init(&n->texts) || dict_init(&n->dies) ? -ENOMEM : 0;
}

void dwarf_names_fini(struct dwarf_names *n)
{
	dict_fini(&n->texts);
	dict_fini(&n->dies);
	buf_fini(&n->work);
	free(n->text_of);
}

static const char *text(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attr;
	const char *s = dwarf_formstring(dwarf_attr_integrate(die, name, &attr));

	return s && *s ? s : NULL;
}

/* Moves to the function's first declaration, whose parents are its scopes. */
static void to_origin(Dwarf_Die *die)
{
	for (int i = 0; i < 16; i++) {
		Dwarf_Attribute attr;
		Dwarf_Die next;

		if (!dwarf_attr(die, DW_AT_abstract_origin, &attr) &&
		    !dwarf_attr(die, DW_AT_specification, &attr))
			return;
		if (!dwarf_formref_die(&attr, &next))
			return;
		*die = next;
	}
}

/* The child of `parent` that is the DIE at `target` or contains it. */
static bool child_with(struct dwarf_names *n, Dwarf_Die *parent, Dwarf_Off target, Dwarf_Die *ret)
{
	Dwarf_Die die, next;

	if (dwarf_child(parent, &die) || dwarf_dieoffset(&die) > target)
		return false;
	while (n->steps && !dwarf_siblingof(&die, &next) && dwarf_dieoffset(&next) <= target) {
		n->steps--;
		die = next;
	}
	*ret = die;
	return true;
}

static const char *scope_name(Dwarf_Die *die)
{
	const char *name = text(die, DW_AT_name);

	switch (dwarf_tag(die)) {
	case DW_TAG_namespace:
		return name ? name : "(anonymous namespace)";
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
	case DW_TAG_module:
	case DW_TAG_subprogram:
		return name ? name : "{unnamed}";
	}
	return NULL; /* lexical blocks have no name to show */
}

/* Writes scope::scope::name to n->work. false: the name has no scope. */
static bool put_scopes(struct dwarf_names *n, Dwarf_Die *origin, const char *name)
{
	Dwarf_Off target = dwarf_dieoffset(origin);
	Dwarf_Die at;
	bool any = false;

	buf_reset(&n->work);
	if (!dwarf_diecu(origin, &at, NULL, NULL))
		return false;
	for (int i = 0; i < MAX_SCOPES; i++) {
		const char *scope;

		if (!child_with(n, &at, target, &at))
			return false;
		if (dwarf_dieoffset(&at) == target)
			break;
		scope = scope_name(&at);
		if (scope) {
			buf_str(&n->work, scope);
			buf_str(&n->work, "::");
			any = true;
		}
	}
	buf_str(&n->work, name);
	buf_add(&n->work, "", 1);
	return any && !n->work.error;
}

/* Where the text id of a DIE is kept; 0: none yet. NULL: no memory. */
static uint32_t *place(struct dwarf_names *n, Dwarf *dw, Dwarf_Die *origin)
{
	uint64_t key[2] = {dwarf_dieoffset(origin), dwarf_cu_getdwarf(origin->cu) == dw};
	uint32_t id = dict_add(&n->dies, key, sizeof(key));

	if (id == DICT_NONE)
		return NULL;
	if (id >= n->cap) {
		uint32_t cap = (id + 1) * 2;
		uint32_t *p = realloc(n->text_of, cap * sizeof(*p));

		if (!p)
			return NULL;
		memset(p + n->cap, 0, (cap - n->cap) * sizeof(*p));
		n->text_of = p;
		n->cap = cap;
	}
	return &n->text_of[id];
}

static const char *qualified(struct dwarf_names *n, Dwarf *dw, Dwarf_Die *die, const char *name)
{
	uint32_t *at, made;

	to_origin(die);
	at = place(n, dw, die);
	if (!at)
		return name;
	if (!*at) {
		if (!put_scopes(n, die, name)) {
			buf_reset(&n->work);
			buf_str(&n->work, name);
			buf_add(&n->work, "", 1);
		}
		made = n->work.error ? DICT_NONE : dict_add(&n->texts, n->work.p, n->work.len);
		if (made == DICT_NONE)
			return name;
		*at = made;
	}
	return n->texts.entries[*at].key;
}

void dwarf_names_resolve(struct dwarf_names *n, Dwarf *dw, struct unit_node *node, bool qualify)
{
	Dwarf_Attribute attr;
	Dwarf_Word line;
	Dwarf_Die die;

	if (node->resolved)
		return;
	node->resolved = true;
	if (!dwarf_offdie(dw, node->die, &die))
		return;
	node->linkage = text(&die, DW_AT_linkage_name);
	if (!node->linkage)
		node->linkage = text(&die, DW_AT_MIPS_linkage_name);
	node->name = text(&die, DW_AT_name);
	if (dwarf_attr_integrate(&die, DW_AT_decl_line, &attr) && !dwarf_formudata(&attr, &line) &&
	    line <= INT32_MAX)
		node->start_line = (uint32_t)line;
	if (!node->linkage && node->name && qualify)
		node->name = qualified(n, dw, &die, node->name);
}

const char *dwarf_names_path(struct dwarf_names *n, const char *dir, const char *file)
{
	uint32_t id;

	if (!file)
		return "";
	if (file[0] == '/' || file[0] == '<' || !file[0] || !dir)
		return file;
	buf_reset(&n->work);
	buf_str(&n->work, dir);
	buf_str(&n->work, "/");
	buf_str(&n->work, file);
	buf_add(&n->work, "", 1);
	id = n->work.error ? DICT_NONE : dict_add(&n->texts, n->work.p, n->work.len);
	return id == DICT_NONE ? file : n->texts.entries[id].key;
}

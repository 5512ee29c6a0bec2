/* SPDX-License-Identifier: Apache-2.0 */
/* Within dwarf: what a function is called, through its abstract origins. */
#ifndef SYMBOLS_DWARF_NAME_H
#define SYMBOLS_DWARF_NAME_H

#include <elfutils/libdw.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/dict.h"

struct unit_node;

/* Names put together from scopes; they are kept, as few functions need it. */
struct dwarf_names {
	struct dict texts, dies; /* {0}, then dwarf_names_init() */
	struct buf work;
	uint32_t *text_of, cap; /* by die id */
	uint64_t steps;         /* that searches for scopes may still take */
};

int dwarf_names_init(struct dwarf_names *);
void dwarf_names_fini(struct dwarf_names *);
/* Fills name, linkage and start_line. `qualify`: put scopes before a name that has no linkage name.
 */
void dwarf_names_resolve(struct dwarf_names *, Dwarf *, struct unit_node *, bool qualify);
/* dir/file, kept; file alone where it is absolute or dir is NULL. */
const char *dwarf_names_path(struct dwarf_names *, const char *dir, const char *file);
#endif

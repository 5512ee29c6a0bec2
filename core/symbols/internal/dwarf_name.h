/* SPDX-License-Identifier: Apache-2.0 */
/* Names of functions, by their abstract origins, with their scopes. For dwarf.c. */
#ifndef SYMBOLS_DWARF_NAME_H
#define SYMBOLS_DWARF_NAME_H

#include <elfutils/libdw.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/dict.h"

struct unit_node;

/* Names that were made of scopes. They are kept until fini, as few functions need them. */
struct dwarf_names {
	struct dict texts, dies; /* {0}, then dwarf_names_init() */
	struct buf work;         /* scratch */
	uint32_t *text_of, cap;  /* ids in texts, by ids in dies */
	uint64_t steps;          /* DIEs that searches for scopes may still visit */
};

int dwarf_names_init(struct dwarf_names *);
void dwarf_names_fini(struct dwarf_names *);
/* Sets name, linkage and start_line. qualify: names without a linkage name get their scopes. */
void dwarf_names_resolve(struct dwarf_names *, Dwarf *, struct unit_node *, bool qualify);
/* dir/file, valid until fini; file itself if it is absolute or dir is NULL; "" if file is NULL. */
const char *dwarf_names_path(struct dwarf_names *, const char *dir, const char *file);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of Go's functions: how far sp has moved at each instruction (pcsp), and how Go's compiler
 * saves rbp. */
#ifndef DWARF_GOROWS_H
#define DWARF_GOROWS_H

#include <fusee/gotable.h>

#include "../rows.h"

/* Makes sorted rows. Functions with invalid entries are skipped or get the rule EXPRESSION, and are
 * counted. 0, -ENOMEM, -E2BIG. */
int go_read(struct table_build *, const struct fusee_go_table *, struct rows *ret);
#endif

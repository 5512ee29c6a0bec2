/* SPDX-License-Identifier: Apache-2.0 */
/* Finds Go's function table in a file, and the start of the text that its addresses are relative
 * to. */
#ifndef DWARF_GOFILE_H
#define DWARF_GOFILE_H

#include <fusee/helpers.h>

#include "gopclntab.h"

/* 0; -ENOENT: the file is no Go binary; -EBADMSG: its table contradicts itself, or the start of its
 * text is not found. *go is valid until inspect() returns. */
int gofile_find(struct go_table *go, const struct fusee_unwinder_host *, uint64_t file);
#endif

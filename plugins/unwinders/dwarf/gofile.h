/* SPDX-License-Identifier: Apache-2.0 */
/* Finds Go's function table in a file, and what its addresses count from. */
#ifndef DWARF_GOFILE_H
#define DWARF_GOFILE_H

#include <fusee/helpers.h>

#include "gopclntab.h"

/* 0; -ENOENT: not a Go binary; -EBADMSG: its table lies, or nothing says where its text begins.
 * *go borrows from the host, until inspect() returns. */
int gofile_find(struct go_table *go, const struct fusee_unwinder_host *, uint64_t file);
#endif

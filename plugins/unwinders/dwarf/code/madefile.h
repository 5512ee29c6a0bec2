/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that was made at run time, as the core hands it to inspect(): a file with one section of
 * words of 64 bits and code behind them:
 *
 *	pieces, starts              how many
 *	address, bytes              of each piece, in order of address
 *	address << 1 | returned     of each start: struct forward_start
 *	the code of the pieces
 *
 * Addresses are relative to the mapping, as the step looks them up.
 */
#ifndef DWARF_MADEFILE_H
#define DWARF_MADEFILE_H

#include <fusee/helpers.h>

#include "../rows.h"

#define MADEFILE_SECTION ".fusee.made"
#define MADEFILE_MAX_SPAN (64ull << 20) /* from the first piece's code to the last */

/* Adds the rows of the file. 0; -ENOENT: it is no such file; -EBADMSG: it is damaged; -errno. */
int madefile_add(struct table_build *, const struct fusee_unwinder_host *, uint64_t file,
		 struct rows *);
#endif

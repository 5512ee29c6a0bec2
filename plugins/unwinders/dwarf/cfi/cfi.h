/* SPDX-License-Identifier: Apache-2.0 */
/* Reads call frame information, .eh_frame and .debug_frame, into rows. Every byte is foreign. */
#ifndef DWARF_CFI_H
#define DWARF_CFI_H

#include <stddef.h>
#include <stdint.h>

#include "../rows.h"

struct cfi_section {
	const uint8_t *bytes; /* borrowed */
	size_t len;
	uint64_t vaddr; /* where .eh_frame is loaded; .debug_frame: any */
	int debug;      /* 1: .debug_frame, 0: .eh_frame */
};

/*
 * Reads a section into a sheet of sorted rows. Functions outside of build->text are skipped and
 * counted. Functions whose description cannot be read get the rule EXPRESSION and are counted. 0;
 * -EBADMSG: the length of an entry exceeds the section (*ret has all entries before it); -ENOMEM;
 * -E2BIG.
 */
int cfi_read(struct table_build *, const struct cfi_section *, struct sheet *ret);
#endif

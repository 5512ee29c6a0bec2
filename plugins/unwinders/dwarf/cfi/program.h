/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the instructions (DW_CFA_*) of one CIE or FDE. Every byte of them is foreign. */
#ifndef DWARF_CFI_PROGRAM_H
#define DWARF_CFI_PROGRAM_H

#include "../cursor.h"
#include "../rows.h"
#include "x86_64.h"

#define CFI_PROGRAM_REMEMBERED 32 /* depth of DW_CFA_remember_state */

/* What a CIE gives to the programs of its FDEs. */
struct cfi_common {
	uint64_t code_align;
	int64_t data_align;
	struct cfi_frame frame; /* after the instructions of the CIE */
};

struct cfi_program {
	struct table_build *build;
	struct sheet *to; /* rows are added here, unless `initial` */
	const struct cfi_common *common;
	struct cursor c;                  /* the instructions */
	struct cfi_frame frame;           /* what holds at loc */
	uint64_t loc, hi;                 /* the current address; the end of the function */
	uint32_t last_rule, last_pattern; /* of this function's rows; UINT32_MAX: none yet */
	uint32_t depth;
	int64_t saved_fp; /* for x86_64_popped() */
	int initial;      /* the instructions are a CIE's: without addresses */
	int err;
	struct cfi_frame remembered[CFI_PROGRAM_REMEMBERED];
};

/* Runs the instructions up to their end or to hi. 0; -EBADMSG: an instruction is not valid or not
 * known; else what adding a row returned. */
int cfi_program_run(struct cfi_program *);
#endif

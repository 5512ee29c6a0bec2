/* SPDX-License-Identifier: Apache-2.0 */
/*
 * * Rows for code that no path from a function's beginning reaches: behind a computed goto or an
 * unknown table, or of functions without symbols. The distance of sp from the return address
 * depends on the pc alone, so it can be computed from a way out, too: at `ret` nothing is pushed,
 * and from there each instruction's effect is undone. All ways out must agree.
 */
#ifndef DWARF_CODE_BACK_H
#define DWARF_CODE_BACK_H

#include "state.h"
#include "text.h"

/* Marks the instructions whose state it proves with STATE, as if they had been followed, among the
 * bytes that have neither STATE nor COVERED. Adds the functions that they call to `calls`. 0,
 * -ENOMEM.
 */
int code_back(const struct code *, struct code_states *, uint32_t *bytes,
	      struct code_entries *calls);
#endif

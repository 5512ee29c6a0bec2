/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that no path leads to from where functions begin: behind a computed goto or an unknown
 * table, or functions that nothing names. Where sp is relative to the return address is a function
 * of the pc, so the way out says it as well as the way in: at `ret` nothing is pushed, and each
 * instruction before says what was there before it. All ways out must agree.
 */
#ifndef DWARF_CODE_BACK_H
#define DWARF_CODE_BACK_H

#include "state.h"
#include "text.h"

/* Marks what it proves among the bytes that have neither STATE nor COVERED: with STATE, as if it
 * had been followed. What they call is added to `calls`. 0, -ENOMEM. */
int code_back(const struct code *, struct code_states *, uint32_t *bytes,
	      struct code_entries *calls);
#endif

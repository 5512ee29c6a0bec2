/* SPDX-License-Identifier: Apache-2.0 */
/*
 * * Finds functions that may not return, by the code behind their calls. No function ends with a
 * call that returns, so a function that is called at the end of another is suspected: nothing is
 * concluded from its calls about the code behind them.
 */
#ifndef DWARF_CODE_CALLS_H
#define DWARF_CODE_CALLS_H

#include "text.h"

/* Where a call goes: the function's address, or that of the word that it is read from. 0: not
 * known. */
uint64_t code_callee(const struct code *, size_t at, const struct insn *);
/* As code_state_apply(). A call of a small function of this text that calls nothing changes no
 * other registers than that writes; of others all that the ABI lets them change are lost. */
int code_apply(const struct code *, struct code_states *, size_t at, const struct insn *,
	       struct code_state *);
/* Adds, sorted, the functions that are called by a function's last instruction. `bytes`:
 * instructions begin where STATE or OWN is. 0, -ENOMEM. */
int code_suspects(const struct code *, const uint32_t *bytes, struct code_entries *suspects);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computed gotos and switches whose table or bound was not found: what a function's instructions
 * point to in data is read as a table of addresses within this function. Only jumps of the function
 * lead there, so if all of these that are unknown have one state, the places have it.
 */
#ifndef DWARF_CODE_LABELS_H
#define DWARF_CODE_LABELS_H

#include "state.h"
#include "text.h"

/* One function while its instructions are read in sequence. A zeroed struct is empty. */
struct code_labels {
	struct code_state state; /* of its unknown jumps */
	int jumps;               /* 0: none; 1: all have this state; -1: they differ */
	struct code_entries tables;
	size_t looked_at; /* entries of tables, of all functions */
};

/* An instruction of the function; NULL: its state is not known. 0, -ENOMEM. */
int code_labels_read(struct code_labels *, const struct code *, size_t at,
		     const struct code_state *);
/* Calls learn() for each place in [lo, hi) that a table of the function names; is_place() says
 * whether an instruction may begin there, 2: with this state. A table with another place is none.
 * Without symbols the table may be of another function, unless the state of a place is known. */
void code_labels_find(struct code_labels *, const struct code *, size_t lo, size_t hi,
		      int (*is_place)(void *, size_t at), void (*learn)(void *, size_t at),
		      void *ctx);
/* Empties it for the next function. */
void code_labels_reset(struct code_labels *);
#endif

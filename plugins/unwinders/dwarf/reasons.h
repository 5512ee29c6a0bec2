/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Why the step of the dwarf unwinder truncates a stack: the values of u->error. */
#ifndef DWARF_REASONS_H
#define DWARF_REASONS_H

enum dwarf_reason {
	DWARF_REASON_STACK_UNREADABLE =
		1,                /* a saved register or return address could not be read */
	DWARF_REASON_NO_PROGRESS, /* the caller's sp is not above this frame's */
	DWARF_REASON_EXPRESSION,  /* kind EXPRESSION: a rule that the table cannot express */
	DWARF_REASON_REGISTER,    /* the rule needs a register that is not known in this frame */
	DWARF_REASON_TABLE,       /* an index of the table leads outside of it */
	DWARF_REASON_SWITCH,      /* kind SWITCH: the caller is on another stack */
	DWARF_REASONS,            /* number of reasons, and 1 */
};

/* The texts, from 1 on, then NULL. They are metric labels: never change a released text. */
#define DWARF_REASON_TEXTS                                                              \
	{                                                                               \
		"stack not readable", "caller below its callee", "row not expressible", \
			"register not known", "table damaged", "stack switched", 0      \
	}
#endif

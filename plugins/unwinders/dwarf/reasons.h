/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Why the dwarf unwinder's step ends a stack that is not whole: the values of u->error. */
#ifndef DWARF_REASONS_H
#define DWARF_REASONS_H

enum dwarf_reason {
	DWARF_REASON_STACK_UNREADABLE =
		1,                /* a saved register or return address could not be read */
	DWARF_REASON_NO_PROGRESS, /* the caller's sp is not above this one's */
	DWARF_REASON_EXPRESSION,  /* kind EXPRESSION: a rule that the table has no words for */
	DWARF_REASON_REGISTER,    /* the rule needs a register that is not known in this frame */
	DWARF_REASON_TABLE,       /* an index of the table leads outside of it */
	DWARF_REASON_SWITCH,      /* kind SWITCH: the caller is on another stack */
	DWARF_REASONS,            /* one past the last */
};

/* The texts, from 1; ends with NULL. Metric labels: never change one that was released. */
#define DWARF_REASON_TEXTS                                                              \
	{                                                                               \
		"stack not readable", "caller below its callee", "row not expressible", \
			"register not known", "table damaged", "stack switched", 0      \
	}
#endif

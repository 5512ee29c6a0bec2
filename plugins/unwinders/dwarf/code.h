/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows for code that has no description (musl's, hand-written assembly): functions are followed
 * from their first instruction, along every branch, counting what they push. What does not add up
 * (a return with something still pushed, one place with two depths) is left without rows, and so is
 * what is not reached: a row is a proof or it is not there.
 */
#ifndef DWARF_CODE_H
#define DWARF_CODE_H

#include <stddef.h>
#include <stdint.h>

#include "rows.h"

struct code {
	const uint8_t *bytes; /* of the text; borrowed */
	size_t len;
	uint64_t vaddr;
	const struct rows *known; /* what has rows already is not looked at */
};

struct code_entries {
	uint64_t *p; /* owned; addresses, in any order, anywhere */
	size_t n, cap;
};

int code_entries_add(struct code_entries *, uint64_t vaddr);
void code_entries_fini(struct code_entries *);

/* sure: functions begin there (symbols say so); both grow by what the code calls and points to.
 * maybe: pointers to there are in the file. 0, -ENOMEM, -E2BIG. */
int code_read(struct table_build *, const struct code *, struct code_entries *sure,
	      struct code_entries *maybe, struct rows *ret);
#endif

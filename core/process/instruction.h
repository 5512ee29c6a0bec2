/* SPDX-License-Identifier: Apache-2.0 */
/* Where the instructions of a function begin. x86-64. */
#ifndef PROCESS_INSTRUCTION_H
#define PROCESS_INSTRUCTION_H

#include "process/elf.h"

/* The begins of instructions at an offset, or around it. */
struct instruction_begins {
	uint64_t before; /* the last before the offset; also where it is unknown what follows */
	uint64_t after;  /* the first behind it; 0: the function ends before, or it is unknown */
};

/* Does an instruction begin `plus` bytes behind the begin of this function? All instructions before
 * are decoded. 0; -EILSEQ: no, or not every instruction before is known: *around says which are;
 * -ERANGE: that is not in the function; -E2BIG: the function is too long; -ENOENT: the file does
 * not hold its code; -EIO; -ENOMEM. */
int instruction_begins(struct elf *, struct fusee_range function, uint64_t plus,
		       struct instruction_begins *around);
#endif

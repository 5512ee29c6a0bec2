/* SPDX-License-Identifier: Apache-2.0 */
/* Where the instructions of a function begin. x86-64. */
#ifndef PROCESS_INSTRUCTION_H
#define PROCESS_INSTRUCTION_H

#include <stdbool.h>
#include <stdint.h>

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
/* Registers of arguments, by the processor's numbers: rdi; and rsi and rdx, too. */
#define INSTRUCTION_FIRST (1u << 7)
#define INSTRUCTION_THREE (1u << 7 | 1u << 6 | 1u << 2)

/* The code of a function begins with these n bytes. Returns the offset of its first instruction
 * that the kernel emulates at a probe, if the stack is as at the begin there, and so are these
 * registers. 0: that is the first, or there is none. At another instruction, of which the kernel
 * runs a copy in a step of its own, a probe costs some times as much. */
uint32_t instruction_emulated(const uint8_t *code, uint32_t n, uint16_t kept);
/* The same of a function in a file. one: only rdi, else rsi and rdx, too. */
uint32_t instruction_emulated_in(struct elf *, uint64_t at, uint64_t bytes, bool one);
#endif

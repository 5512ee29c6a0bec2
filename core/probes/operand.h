/* SPDX-License-Identifier: Apache-2.0 */
/* Where the arguments of a probe are, as its note says in the assembler's syntax: "-4@%edi 8@$7
 * 8@-16(%rbp,%rcx,8)". Without state, and for any bytes. */
#ifndef PROBES_OPERAND_H
#define PROBES_OPERAND_H

#include <stddef.h>
#include <stdint.h>

#include "../../bpf/probe_maps.h"

/* The name of a variable, in the text; p is NULL if the argument is at none. Then the operand is
 * memory at the probe's instruction (rip), and its number is from the variable's address on: the
 * caller adds what lies between the two. */
struct operand_symbol {
	const char *p;
	size_t len;
};

/* Reads the argument of this number, from 0 on. 0; -ENOTSUP: the text has no such argument, or it
 * is of a form that is not read, such as a number with a fraction; *why then is a clause of at most
 * len bytes. */
int operand_find(const char *arguments, uint32_t number, struct probe_operand *,
		 struct operand_symbol *, char *why, size_t len);
#endif

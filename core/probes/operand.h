/* SPDX-License-Identifier: Apache-2.0 */
/* Where the arguments of a probe are, as its note says in the assembler's syntax: "-4@%edi 8@$7
 * 8@-16(%rbp,%rcx,8)". Without state, and for any bytes. */
#ifndef PROBES_OPERAND_H
#define PROBES_OPERAND_H

#include <stddef.h>
#include <stdint.h>

#include "../../bpf/probe_maps.h"

/* Reads the argument of this number, from 0 on. 0; -ENOTSUP: the text has no such argument, or it
 * is of a form that is not read, such as a number with a fraction or the address of a symbol; *why
 * then is a clause of at most len bytes. */
int operand_find(const char *arguments, uint32_t number, struct probe_operand *, char *why,
		 size_t len);
#endif

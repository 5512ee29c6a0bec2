/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes x86-64 instructions: their length and their effects on sp, rbp and the flow. */
#ifndef DWARF_INSN_H
#define DWARF_INSN_H

#include <stddef.h>
#include <stdint.h>

enum insn_effect {
	INSN_NOTHING,
	INSN_PUSH,       /* sp -= 8 */
	INSN_PUSH_FP,    /* push %rbp */
	INSN_POP,        /* sp += 8 */
	INSN_POP_FP,     /* pop %rbp */
	INSN_ADD_SP,     /* sp += value */
	INSN_SAVE_FP,    /* mov %rbp,value(%rsp) */
	INSN_SET_FP,     /* rbp = rsp + value */
	INSN_SP_FROM_FP, /* sp = rbp + value */
	INSN_LEAVE,
	INSN_LOSE_SP,  /* sp decreases by an unknown amount: and $-16,%rsp; sub %rax,%rsp */
	INSN_WRITE_SP, /* sp gets a value that cannot be followed; perhaps rbp too */
	INSN_WRITE_FP, /* rbp gets another value */
	INSN_LOAD_FP,  /* mov value(%rsp),%rbp */
	INSN_CALL,     /* to target, 0: unknown. jump, branch alike */
	INSN_JUMP,
	INSN_BRANCH,
	INSN_RETURN,
	INSN_ODD_RETURN, /* pops more than the return address: ret n, lret, iret */
	INSN_HALT,       /* the next instruction is not reached: ud2, hlt, int3, sysret */
};

struct insn {
	uint8_t len;
	uint8_t effect; /* enum insn_effect */
	uint8_t nop;    /* 1: may be padding: nop, nopw n(%rax,%rax) */
	int32_t value;
	int64_t target; /* relative to the instruction's start; has_target */
	uint8_t has_target;
	int64_t address; /* what lea n(%rip) makes, likewise; 0: none */
};

/* Decodes the instruction at p. 0; -1: unknown instruction, or it has more than n bytes. Bytes that
 * no processor executes may be taken for an instruction; an instruction is never taken for another.
 */
int insn_decode(const uint8_t *p, size_t n, struct insn *);
#endif

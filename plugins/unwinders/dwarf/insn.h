/* SPDX-License-Identifier: Apache-2.0 */
/* x86-64 instructions: how long they are and what they do to the stack and to the flow. */
#ifndef DWARF_INSN_H
#define DWARF_INSN_H

#include <stddef.h>
#include <stdint.h>

enum dwt_effect {
	DWT_NOTHING,
	DWT_PUSH,       /* sp -= 8 */
	DWT_PUSH_FP,    /* push %rbp */
	DWT_POP,        /* sp += 8 */
	DWT_POP_FP,     /* pop %rbp */
	DWT_ADD_SP,     /* sp += value */
	DWT_SAVE_FP,    /* mov %rbp,value(%rsp) */
	DWT_SET_FP,     /* mov %rsp,%rbp */
	DWT_SP_FROM_FP, /* sp = rbp + value */
	DWT_LEAVE,
	DWT_LOSE_SP,  /* sp becomes lower, nobody knows by how much: and $-16,%rsp; sub %rax,%rsp */
	DWT_WRITE_SP, /* sp becomes what can't be followed */
	DWT_WRITE_FP, /* rbp becomes another value */
	DWT_CALL,     /* to target, 0: unknown. jump, branch alike */
	DWT_JUMP,
	DWT_BRANCH,
	DWT_RETURN,
	DWT_HALT, /* what stands behind it is not reached: ud2, hlt, int3 */
};

struct dwt_insn {
	uint8_t len;
	uint8_t effect; /* enum dwt_effect */
	uint8_t nop;    /* padding, maybe */
	int32_t value;
	int64_t target; /* relative to the instruction's start; has_target */
	uint8_t has_target;
	int64_t address; /* what lea n(%rip) makes, likewise; 0: none */
};

/* Decodes what stands at p. 0; -1: not an instruction that we know, or not all of it is there. */
int dwt_insn(const uint8_t *p, size_t n, struct dwt_insn *);
#endif

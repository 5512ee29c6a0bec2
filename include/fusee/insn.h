/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fusee/insn.h - decodes x86-64 instructions: their length and their effects on sp, rbp and the
 * flow. Optional: a plugin links it statically (libfusee-insn.a, `pkg-config --libs fusee-insn`; in
 * fusee's own tree the plugin's file `uses` has the line "insn").
 */
#ifndef FUSEE_INSN_H
#define FUSEE_INSN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

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
	/* sp changes by an unknown amount: and $-16,%rsp; sub %rax,%rsp; lea (%rax,%rcx),%rsp */
	INSN_LOSE_SP,
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

/* Memory that an instruction reads, writes or has the address of by rbp and a displacement. */
enum insn_by_fp {
	INSN_NOT_BY_FP,
	INSN_BELOW_FP, /* as a function's frame */
	INSN_AT_FP,    /* the first 16 bytes: as an object that rbp points to */
};

/* What code by hand does with copies of rsp, beside the effect: where it has aligned rsp, such a
 * copy says where the frame is. `reg` is none of rsp and rbp. */
enum insn_copy {
	INSN_COPY_NONE,
	INSN_COPY_SP,      /* reg = rsp + at */
	INSN_COPY_TO_SP,   /* rsp = reg + at */
	INSN_COPY_SET_FP,  /* rbp = reg */
	INSN_COPY_TO_FP,   /* rbp = *(reg + at) */
	INSN_COPY_SAVE,    /* *(rsp + at) = reg */
	INSN_COPY_LOAD,    /* reg = *(rsp + at) */
	INSN_COPY_SAVE_FP, /* *(rsp + at) = rbp */
	INSN_COPY_LOAD_FP, /* rbp = *(rsp + at) */
	INSN_COPY_LOAD_SP, /* rsp = *(rsp + at) */
	INSN_COPY_PUSH,    /* push *(rsp + at), of rsp as it was */
	INSN_COPY_PUSH_REG,
	INSN_COPY_POP_REG,
	INSN_COPY_LOAD_BY_FP, /* reg = *(rbp + at), at from -INSN_NEAR_FP to -8 */
};

#define INSN_NEAR_FP 64

struct insn {
	uint8_t len;
	uint8_t effect; /* enum insn_effect */
	uint8_t copy;   /* enum insn_copy */
	uint8_t reg;    /* by the processor's numbers */
	int32_t at;
	/* A bit of each register that may be written, rsp and rbp aside; of a call those that
	 * the ABI lets the callee change. */
	uint16_t written;
	uint8_t by_fp; /* enum insn_by_fp */
	uint8_t nop;   /* 1: may be padding: nop, nopw n(%rax,%rax) */
	int32_t value;
	int64_t target; /* relative to the instruction's start; has_target */
	uint8_t has_target;
	int64_t address; /* what lea n(%rip) makes, likewise; 0: none */
	int64_t slot;    /* the word that call or jmp *n(%rip) reads, likewise; 0: none */
};

/* Decodes the instruction at p. 0; -1: unknown instruction, or it has more than n bytes. Bytes that
 * no processor executes may be taken for an instruction; an instruction is never taken for another.
 */
int fusee_insn_decode(const uint8_t *p, size_t n, struct insn *);
/* Does it write the word at (%rsp) in place? As the first of a function, its return address. */
int fusee_insn_writes_top(const uint8_t *p, size_t n);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Steps over a stack copy with all registers by the rules that libdw finds in a file: the truth
 * that follow mode of tool_bpf compares with. */
#ifndef TOOLS_CFI_ORACLE_H
#define TOOLS_CFI_ORACLE_H

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ORACLE_REGS 17

struct oracle_frame {
	uint64_t reg[ORACLE_REGS];
	uint32_t known;
	bool exact; /* pc is the interrupted instruction */
	bool (*read)(void *arg, uint64_t addr, uint64_t *value);
	void *arg;
};

struct oracle_value {
	uint64_t v;
	bool known, is_value; /* is_value: v is not the value's address */
};

static inline struct oracle_value oracle_reg(const struct oracle_frame *f, uint64_t reg)
{
	return reg < ORACLE_REGS && f->known >> reg & 1
		       ? (struct oracle_value){f->reg[reg], true, true}
		       : (struct oracle_value){0};
}

/* Runs an expression. cfa: what DW_OP_call_frame_cfa means. */
static inline struct oracle_value oracle_run(const struct oracle_frame *f, const Dwarf_Op *op,
					     size_t n, const uint64_t *cfa)
{
	uint64_t stack[16] = {0};
	struct oracle_value r = {0}, base;
	uint32_t at = 0;

	for (size_t i = 0; i < n; i++) {
		const uint8_t a = op[i].atom;

		if (at + 1 >= 16 || (a == DW_OP_call_frame_cfa && !cfa))
			return r;
		if (a == DW_OP_call_frame_cfa)
			stack[at++] = *cfa;
		else if ((a >= DW_OP_breg0 && a <= DW_OP_breg31) || a == DW_OP_bregx) {
			base = oracle_reg(f, a == DW_OP_bregx ? op[i].number
							      : (Dwarf_Word)(a - DW_OP_breg0));
			if (!base.known)
				return r;
			stack[at++] = base.v + (a == DW_OP_bregx ? op[i].number2 : op[i].number);
		} else if (a == DW_OP_regx || (a >= DW_OP_reg0 && a <= DW_OP_reg31))
			return oracle_reg(f, a == DW_OP_regx ? op[i].number
							     : (Dwarf_Word)(a - DW_OP_reg0));
		else if (a >= DW_OP_lit0 && a <= DW_OP_lit31)
			stack[at++] = (uint64_t)(a - DW_OP_lit0);
		else if (a == DW_OP_const1u)
			stack[at++] = op[i].number;
		else if (a == DW_OP_plus_uconst && at)
			stack[at - 1] += op[i].number;
		else if (a == DW_OP_deref && at) {
			if (!f->read(f->arg, stack[at - 1], &stack[at - 1]))
				return r;
		} else if (a == DW_OP_stack_value)
			r.is_value = true;
		else if (at < 2)
			return r;
		else {
			const uint64_t y = stack[--at], x = stack[at - 1];

			if (a == DW_OP_plus)
				stack[at - 1] = x + y;
			else if (a == DW_OP_and)
				stack[at - 1] = x & y;
			else if (a == DW_OP_shl)
				stack[at - 1] = x << y;
			else if (a == DW_OP_ge)
				stack[at - 1] = (int64_t)x >= (int64_t)y;
			else
				return r;
		}
	}
	r.known = at > 0;
	r.v = at ? stack[at - 1] : 0;
	return r;
}

/* On the way out of an aligned frame gcc still has registers relative to rbp, which is popped: it
 * leads out of the frame. All of them have their callers' values then. */
static inline bool oracle_is_stale(const struct oracle_frame *f, const Dwarf_Op *op, size_t n,
				   uint64_t cfa)
{
	uint64_t at;

	if (!f->exact || n != 2 || op[0].atom != DW_OP_call_frame_cfa || op[1].atom != DW_OP_breg6)
		return false;
	at = f->reg[6] + op[1].number;
	return at < f->reg[7] || at > cfa - 16;
}

static inline struct oracle_value oracle_restore(const struct oracle_frame *f, Dwarf_Frame *rules,
						 uint32_t reg, uint64_t cfa)
{
	struct oracle_value r = {0};
	Dwarf_Op mem[3], *op;
	size_t n;

	if (dwarf_frame_register(rules, (int)reg, mem, &op, &n))
		return r;
	/* Registers without a rule: of those that callees save, libdw forgets rbx. */
	if (!n)
		return op != mem || reg == 3 ? oracle_reg(f, reg) : r;
	if (oracle_is_stale(f, op, n, cfa))
		return oracle_reg(f, reg);
	r = oracle_run(f, op, n, &cfa);
	if (!r.known || r.is_value)
		return r;
	r.known = f->read(f->arg, r.v, &r.v);
	return r;
}

/* Goes to the caller. 0; -1: the file does not say where it is. */
static inline int oracle_step(struct oracle_frame *f, Dwarf_CFI *cfi, uint64_t bias, uint64_t *cfa)
{
	struct oracle_frame to = {.read = f->read, .arg = f->arg};
	Dwarf_Frame *rules;
	struct oracle_value v;
	Dwarf_Op *op;
	size_t n;

	if (!cfi || dwarf_cfi_addrframe(cfi, f->reg[16] - bias - !f->exact, &rules))
		return -1;
	dwarf_frame_info(rules, NULL, NULL, &to.exact);
	v = dwarf_frame_cfa(rules, &op, &n) ? (struct oracle_value){0} : oracle_run(f, op, n, NULL);
	*cfa = v.v;
	for (uint32_t reg = 0; v.known && reg < ORACLE_REGS; reg++) {
		struct oracle_value r = oracle_restore(f, rules, reg, *cfa);

		to.reg[reg] = r.v;
		to.known |= (uint32_t)r.known << reg;
	}
	free(rules);
	if (!v.known || !(to.known >> 16 & 1) || !(to.known >> 7 & 1))
		return -1;
	*f = to;
	return 0;
}
#endif

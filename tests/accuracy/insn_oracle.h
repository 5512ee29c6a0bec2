/* SPDX-License-Identifier: Apache-2.0 */
/* What Zydis, a disassembler of others, says of an instruction, in the words of the dwarf
 * unwinder's decoder. */
#ifndef ACCURACY_INSN_ORACLE_H
#define ACCURACY_INSN_ORACLE_H

#include <Zydis/Zydis.h>
#include <string.h>

#include <fusee/insn.h>

struct oracle_insn {
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
};

static int oracle_is(const ZydisDecodedOperand *op, ZydisRegister reg)
{
	return op->type == ZYDIS_OPERAND_TYPE_REGISTER && op->reg.value == reg;
}

/* An operand in memory at a register and a distance that is known, in no segment of its own. */
static int oracle_at(const ZydisDecodedOperand *op, ZydisRegister base)
{
	return op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.base == base &&
	       op->mem.index == ZYDIS_REGISTER_NONE && op->mem.segment != ZYDIS_REGISTER_FS &&
	       op->mem.segment != ZYDIS_REGISTER_GS;
}

/* Is the register, or a part of it, written? */
static int oracle_writes(const struct oracle_insn *o, ZydisRegister reg)
{
	if (o->insn.mnemonic == ZYDIS_MNEMONIC_LWPINS || o->insn.mnemonic == ZYDIS_MNEMONIC_LWPVAL)
		return 0;
	for (int i = 0; i < o->insn.operand_count; i++) {
		const ZydisDecodedOperand *op = &o->ops[i];

		if (op->type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
		    ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, op->reg.value) ==
			    reg)
			return 1;
	}
	return 0;
}

static void oracle_set(struct insn *in, enum insn_effect effect, int64_t value)
{
	in->effect = (uint8_t)effect;
	in->value = (int32_t)value;
}

static void oracle_target(const struct oracle_insn *o, struct insn *in)
{
	const ZydisDecodedOperand *op = &o->ops[0];

	if (op->type != ZYDIS_OPERAND_TYPE_IMMEDIATE || !op->imm.is_relative)
		return;
	in->has_target = 1;
	in->target = o->insn.length + op->imm.value.s;
}

/* Jumps, calls, returns. 0: something else. */
static int oracle_flow(const struct oracle_insn *o, struct insn *in)
{
	switch (o->insn.meta.category) {
	case ZYDIS_CATEGORY_CALL:
		oracle_set(in, INSN_CALL, 0);
		break;
	case ZYDIS_CATEGORY_UNCOND_BR:
		oracle_set(in, INSN_JUMP, 0);
		break;
	case ZYDIS_CATEGORY_COND_BR:
		oracle_set(in, INSN_BRANCH, 0);
		break;
	case ZYDIS_CATEGORY_RET:
		oracle_set(in, o->insn.opcode == 0xc3 ? INSN_RETURN : INSN_ODD_RETURN, 0);
		return 1;
	case ZYDIS_CATEGORY_SYSRET:
		oracle_set(in, INSN_HALT, 0);
		return 1;
	default:
		return 0;
	}
	if (o->insn.mnemonic == ZYDIS_MNEMONIC_XABORT || o->insn.mnemonic == ZYDIS_MNEMONIC_XEND)
		oracle_set(in, INSN_NOTHING, 0);
	oracle_target(o, in);
	return 1;
}

/* Pushes and pops of 8 bytes. */
static void oracle_stack(const struct oracle_insn *o, struct insn *in)
{
	int push = o->insn.meta.category == ZYDIS_CATEGORY_PUSH, wide = 0;

	for (int i = 0; i < o->insn.operand_count; i++)
		wide |= o->ops[i].visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
			oracle_at(&o->ops[i], ZYDIS_REGISTER_RSP) && o->ops[i].size == 64;
	if (!wide)
		oracle_set(in, INSN_WRITE_SP, 0);
	else if (oracle_is(&o->ops[0], ZYDIS_REGISTER_RBP))
		oracle_set(in, push ? INSN_PUSH_FP : INSN_POP_FP, 0);
	else if (!push && o->insn.operand_count_visible &&
		 oracle_is(&o->ops[0], ZYDIS_REGISTER_RSP))
		oracle_set(in, INSN_WRITE_SP, 0);
	else
		oracle_set(in, push ? INSN_PUSH : INSN_POP, 0);
}

/* Arithmetic on rsp whose result is known, or known to be lower. */
static void oracle_arithmetic(const struct oracle_insn *o, struct insn *in)
{
	const ZydisDecodedOperand *from = &o->ops[1];
	int imm = from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE;

	if (!oracle_is(&o->ops[0], ZYDIS_REGISTER_RSP))
		return;
	if (o->insn.mnemonic == ZYDIS_MNEMONIC_ADD && imm)
		oracle_set(in, INSN_ADD_SP, from->imm.value.s);
	else if (o->insn.mnemonic == ZYDIS_MNEMONIC_SUB && imm)
		oracle_set(in, INSN_ADD_SP, -from->imm.value.s);
	else if (o->insn.mnemonic == ZYDIS_MNEMONIC_SUB ||
		 (o->insn.mnemonic == ZYDIS_MNEMONIC_AND && imm && from->imm.value.s < 0))
		oracle_set(in, INSN_LOSE_SP, 0);
}

static void oracle_move(const struct oracle_insn *o, struct insn *in)
{
	const ZydisDecodedOperand *to = &o->ops[0], *from = &o->ops[1];

	if (oracle_is(to, ZYDIS_REGISTER_RBP) && oracle_is(from, ZYDIS_REGISTER_RSP))
		oracle_set(in, INSN_SET_FP, 0);
	else if (oracle_is(to, ZYDIS_REGISTER_RSP) && oracle_is(from, ZYDIS_REGISTER_RBP))
		oracle_set(in, INSN_SP_FROM_FP, 0);
	else if (oracle_at(to, ZYDIS_REGISTER_RSP) && oracle_is(from, ZYDIS_REGISTER_RBP))
		oracle_set(in, INSN_SAVE_FP, to->mem.disp.value);
	else if (oracle_is(to, ZYDIS_REGISTER_RBP) && oracle_at(from, ZYDIS_REGISTER_RSP))
		oracle_set(in, INSN_LOAD_FP, from->mem.disp.value);
}

static void oracle_address(const struct oracle_insn *o, struct insn *in)
{
	const ZydisDecodedOperand *to = &o->ops[0], *from = &o->ops[1];

	if (from->mem.base == ZYDIS_REGISTER_RIP)
		in->address = o->insn.length + from->mem.disp.value;
	if (from->mem.index != ZYDIS_REGISTER_NONE && oracle_is(to, ZYDIS_REGISTER_RSP) &&
	    o->insn.address_width == 64)
		oracle_set(in, INSN_LOSE_SP, 0);
	if (from->mem.index != ZYDIS_REGISTER_NONE)
		return;
	if (oracle_is(to, ZYDIS_REGISTER_RSP) && from->mem.base == ZYDIS_REGISTER_RSP)
		oracle_set(in, INSN_ADD_SP, from->mem.disp.value);
	else if (oracle_is(to, ZYDIS_REGISTER_RSP) && from->mem.base == ZYDIS_REGISTER_RBP)
		oracle_set(in, INSN_SP_FROM_FP, from->mem.disp.value);
	else if (oracle_is(to, ZYDIS_REGISTER_RBP) && from->mem.base == ZYDIS_REGISTER_RSP)
		oracle_set(in, INSN_SET_FP, from->mem.disp.value);
}

/* The word that a call or jump through rip's neighbourhood reads. */
static void oracle_slot(const struct oracle_insn *o, struct insn *in)
{
	const ZydisDecodedOperand *from = &o->ops[0];

	if ((o->insn.mnemonic == ZYDIS_MNEMONIC_CALL || o->insn.mnemonic == ZYDIS_MNEMONIC_JMP) &&
	    o->insn.meta.branch_type == ZYDIS_BRANCH_TYPE_NEAR &&
	    from->type == ZYDIS_OPERAND_TYPE_MEMORY && from->mem.base == ZYDIS_REGISTER_RIP &&
	    from->mem.segment != ZYDIS_REGISTER_FS && from->mem.segment != ZYDIS_REGISTER_GS)
		in->slot = o->insn.length + from->mem.disp.value;
}

static const ZydisRegister oracle_register[16] = {
	ZYDIS_REGISTER_RAX, ZYDIS_REGISTER_RCX, ZYDIS_REGISTER_RDX, ZYDIS_REGISTER_RBX,
	ZYDIS_REGISTER_RSP, ZYDIS_REGISTER_RBP, ZYDIS_REGISTER_RSI, ZYDIS_REGISTER_RDI,
	ZYDIS_REGISTER_R8,  ZYDIS_REGISTER_R9,  ZYDIS_REGISTER_R10, ZYDIS_REGISTER_R11,
	ZYDIS_REGISTER_R12, ZYDIS_REGISTER_R13, ZYDIS_REGISTER_R14, ZYDIS_REGISTER_R15};

/* The registers that are written, rsp and rbp aside. */
static void oracle_written(const struct oracle_insn *o, struct insn *in)
{
	for (unsigned int i = 0; i < 16; i++)
		if (i != 4 && i != 5 && oracle_writes(o, oracle_register[i]))
			in->written |= (uint16_t)(1u << i);
}

static int oracle_number(ZydisRegister reg)
{
	for (int i = 0; i < 16; i++)
		if (oracle_register[i] == reg)
			return i;
	return -1;
}

static void oracle_copied(struct insn *in, enum insn_copy copy, int reg, int64_t at)
{
	in->copy = (uint8_t)copy;
	in->reg = (uint8_t)reg;
	in->at = (int32_t)at;
}

/* Moves of copies of rsp, of 8 bytes. */
static void oracle_copy(const struct oracle_insn *o, struct insn *in)
{
	const ZydisDecodedOperand *to = &o->ops[0], *from = &o->ops[1];
	int lea = o->insn.mnemonic == ZYDIS_MNEMONIC_LEA;
	int r = to->type == ZYDIS_OPERAND_TYPE_REGISTER ? oracle_number(to->reg.value) : -1;
	int q = from->type == ZYDIS_OPERAND_TYPE_REGISTER ? oracle_number(from->reg.value) : -1;
	int m = from->type == ZYDIS_OPERAND_TYPE_MEMORY &&
				(lea || oracle_at(from, from->mem.base)) &&
				from->mem.index == ZYDIS_REGISTER_NONE
			? oracle_number(from->mem.base)
			: -1;

	if (o->insn.mnemonic == ZYDIS_MNEMONIC_PUSH && oracle_at(to, ZYDIS_REGISTER_RSP))
		oracle_copied(in, INSN_COPY_PUSH, 4, to->mem.disp.value);
	if ((o->insn.mnemonic == ZYDIS_MNEMONIC_PUSH || o->insn.mnemonic == ZYDIS_MNEMONIC_POP) &&
	    r >= 0 && r != 4 && r != 5)
		oracle_copied(in,
			      o->insn.mnemonic == ZYDIS_MNEMONIC_PUSH ? INSN_COPY_PUSH_REG
								      : INSN_COPY_POP_REG,
			      r, 0);
	if ((o->insn.mnemonic != ZYDIS_MNEMONIC_MOV && !lea) || o->insn.operand_width != 64)
		return;
	if (q == 4 && r >= 0 && r != 4 && r != 5)
		oracle_copied(in, INSN_COPY_SP, r, 0);
	else if (r == 4 && q >= 0 && q != 4 && q != 5)
		oracle_copied(in, INSN_COPY_TO_SP, q, 0);
	else if (r == 5 && q >= 0 && q != 4 && q != 5)
		oracle_copied(in, INSN_COPY_SET_FP, q, 0);
	else if (q >= 0 && oracle_at(to, ZYDIS_REGISTER_RSP))
		oracle_copied(in, q == 5 ? INSN_COPY_SAVE_FP : INSN_COPY_SAVE, q,
			      to->mem.disp.value);
	else if (lea && m == 4 && r >= 0 && r != 4 && r != 5)
		oracle_copied(in, INSN_COPY_SP, r, from->mem.disp.value);
	else if (lea && r == 4 && m >= 0 && m != 4 && m != 5)
		oracle_copied(in, INSN_COPY_TO_SP, m, from->mem.disp.value);
	else if (!lea && r == 5 && m >= 0 && m != 4 && m != 5)
		oracle_copied(in, INSN_COPY_TO_FP, m, from->mem.disp.value);
	else if (!lea && r >= 0 && r != 4 && r != 5 && m == 5 && from->mem.disp.value < 0 &&
		 from->mem.disp.value >= -INSN_NEAR_FP && from->mem.disp.value % 8 == 0)
		oracle_copied(in, INSN_COPY_LOAD_BY_FP, r, from->mem.disp.value);
	else if (!lea && r >= 0 && m == 4)
		oracle_copied(in,
			      r == 5   ? INSN_COPY_LOAD_FP
			      : r == 4 ? INSN_COPY_LOAD_SP
				       : INSN_COPY_LOAD,
			      r, from->mem.disp.value);
}

static void oracle_effect(const struct oracle_insn *o, struct insn *in)
{
	oracle_slot(o, in);
	oracle_written(o, in);
	oracle_copy(o, in);
	if (oracle_flow(o, in))
		return;
	if (oracle_writes(o, ZYDIS_REGISTER_RSP))
		oracle_set(in, INSN_WRITE_SP, 0);
	else if (oracle_writes(o, ZYDIS_REGISTER_RBP))
		oracle_set(in, INSN_WRITE_FP, 0);
	switch (o->insn.mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
	case ZYDIS_MNEMONIC_PUSHF:
	case ZYDIS_MNEMONIC_PUSHFQ:
	case ZYDIS_MNEMONIC_POP:
	case ZYDIS_MNEMONIC_POPF:
	case ZYDIS_MNEMONIC_POPFQ:
		oracle_stack(o, in);
		break;
	case ZYDIS_MNEMONIC_LEAVE:
		oracle_set(in, o->insn.operand_width == 64 ? INSN_LEAVE : INSN_WRITE_SP, 0);
		break;
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_AND:
		oracle_arithmetic(o, in);
		break;
	case ZYDIS_MNEMONIC_MOV:
		oracle_move(o, in);
		break;
	case ZYDIS_MNEMONIC_LEA:
		oracle_address(o, in);
		break;
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_INT1:
	case ZYDIS_MNEMONIC_INT3:
	case ZYDIS_MNEMONIC_RSM:
	case ZYDIS_MNEMONIC_UIRET:
		oracle_set(in, INSN_HALT, 0);
		break;
	case ZYDIS_MNEMONIC_NOP: /* others, of hints that no processor knows, are not padding */
		in->nop = o->insn.opcode == 0x90 || o->insn.opcode == 0x1f;
		break;
	default:
		break;
	}
}

/*
 * Where Zydis is not followed:
 * - 66 before a near branch or return without REX.W. Zydis reads it as Intel's processors do, which
 *   force 64 bits (Intel SDM volume 1, 6.3.7, "Branch Functions in 64-Bit Mode"); AMD's take 16
 * bits (AMD64 APM volume 3, CALL, JMP, Jcc and RET near: rel16off, 16-bit operand size). The
 * decoder refuses what two processors execute differently.
 * - Instructions of Knights Corner: no other processor has them (Intel Xeon Phi Coprocessor
 *   Instruction Set Architecture Reference Manual, 327364), and the SDM has no such entries.
 * - LWPINS and LWPVAL: Zydis says that they write their first operand. They read it (AMD64 APM
 *   volume 3, LWPINS, LWPVAL: "reg32.vvvv" is copied into the event record). See oracle_writes().
 * - rep xsha512, f3 0f a6 e0, which Zydis does not know (VIA PadLock Programming Guide; OpenSSL's
 * and Node.js' engine for it has these bytes). It writes memory, rsi, rdi and rcx.
 */
static int oracle_lacks(const uint8_t *p, size_t n)
{
	static const uint8_t xsha512[] = {0xf3, 0x0f, 0xa6, 0xe0};

	return n >= sizeof(xsha512) && !memcmp(p, xsha512, sizeof(xsha512)) ? (int)sizeof(xsha512)
									    : 0;
}

static int oracle_refuses(const struct oracle_insn *o, const struct insn *in)
{
	int branch = in->effect == INSN_CALL || in->effect == INSN_JUMP ||
		     in->effect == INSN_BRANCH || in->effect == INSN_RETURN ||
		     in->effect == INSN_ODD_RETURN;

	if (branch && o->insn.attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE && !o->insn.raw.rex.W)
		return 1;
	return o->insn.encoding == ZYDIS_INSTRUCTION_ENCODING_MVEX ||
	       o->insn.meta.isa_ext == ZYDIS_ISA_EXT_KNC ||
	       o->insn.meta.isa_ext == ZYDIS_ISA_EXT_KNCE ||
	       o->insn.meta.isa_ext == ZYDIS_ISA_EXT_KNCV;
}

/* 0; -1: no instruction. */
static int oracle_decode(const ZydisDecoder *decoder, const uint8_t *p, size_t n,
			 struct oracle_insn *o, struct insn *in)
{
	memset(in, 0, sizeof(*in));
	in->len = (uint8_t)oracle_lacks(p, n);
	if (in->len)
		return 0;
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(decoder, p, n, &o->insn, o->ops)))
		return -1;
	in->len = o->insn.length;
	oracle_effect(o, in);
	return oracle_refuses(o, in) ? -1 : 0;
}

enum oracle_verdict {
	ORACLE_AGREES,
	ORACLE_LENGTH,
	ORACLE_EFFECT,
	ORACLE_TARGET,
	ORACLE_REFUSED,  /* our decoder does not know it */
	ORACLE_ACCEPTED, /* only our decoder knows it */
	ORACLE_VERDICTS
};

static enum oracle_verdict oracle_compare(const struct insn *ours, int err,
					  const struct insn *theirs, int oracle_err)
{
	if (err || oracle_err)
		return err && oracle_err ? ORACLE_AGREES : err ? ORACLE_REFUSED : ORACLE_ACCEPTED;
	if (ours->len != theirs->len)
		return ORACLE_LENGTH;
	if (ours->has_target != theirs->has_target ||
	    (ours->has_target && ours->target != theirs->target) ||
	    ours->address != theirs->address || ours->slot != theirs->slot)
		return ORACLE_TARGET;
	if (ours->effect != theirs->effect || ours->value != theirs->value ||
	    ours->nop != theirs->nop || theirs->written & ~ours->written ||
	    ours->copy != theirs->copy || (ours->copy && ours->reg != theirs->reg) ||
	    ours->at != theirs->at)
		return ORACLE_EFFECT;
	return ORACLE_AGREES;
}
#endif

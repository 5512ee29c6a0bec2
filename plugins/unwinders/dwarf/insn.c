/* SPDX-License-Identifier: Apache-2.0 */
/* By the opcode maps of the processor manuals. Only general-purpose instructions can move rsp or
 * rbp: of the others only the length matters. */
#include "insn.h"

#include <string.h>

enum { RSP = 4, RBP = 5 };
enum { REX_B = 1, REX_X = 2, REX_R = 4, REX_W = 8 };

/* What follows an opcode: M modrm; 1, 2 bytes; Z 2 or 4 by operand size; V 4 or 8 by REX.W; J 4; 0
 * nothing; A modrm and 1; B modrm and Z; O an address; E 3 bytes; X not an instruction; P handled
 * by another table or function. */
static const char map1[256 + 1] = "MMMM1ZXXMMMM1ZXP"
				  "MMMM1ZXXMMMM1ZXX"
				  "MMMM1ZPXMMMM1ZPX"
				  "MMMM1ZPXMMMM1ZPX"
				  "PPPPPPPPPPPPPPPP"
				  "0000000000000000"
				  "XXPMPPPPZB1A0000"
				  "1111111111111111"
				  "ABXAMMMMMMMMMMMM"
				  "0000000000X00000"
				  "OOOO00001Z000000"
				  "11111111VVVVVVVV"
				  "AA20PPABE02001X0"
				  "MMMMXXX0MMMMMMMM"
				  "11111111JJX10000"
				  "P0PP00MM000000MM";

static const char map0f[256 + 1] = "MMMMX00000X0XM0X"
				   "MMMMMMMMMMMMMMMM"
				   "MMMMXXXXMMMMMMMM"
				   "00000000PXPXXXXX"
				   "MMMMMMMMMMMMMMMM"
				   "MMMMMMMMMMMMMMMM"
				   "MMMMMMMMMMMMMMMM"
				   "AAAAMMM0MMMMMMMM"
				   "JJJJJJJJJJJJJJJJ"
				   "MMMMMMMMMMMMMMMM"
				   "000MAMXX000MAMMM"
				   "MMMMMMMMMMAMMMMM"
				   "MMAMAAAM00000000"
				   "MMMMMMMMMMMMMMMM"
				   "MMMMMMMMMMMMMMMM"
				   "MMMMMMMMMMMMMMMM";

struct decoder {
	const uint8_t *p, *start, *end;
	struct insn *in;
	uint8_t rex, operand16, rep, opcode, map; /* map: 1, 0x0f, 0x38, 0x3a */
	uint8_t mod, reg, rm;                     /* with REX's bits */
	int has_modrm, sib, rip;
	int32_t disp, imm;
	int bad;
};

static uint8_t next(struct decoder *d)
{
	if (d->p < d->end)
		return *d->p++;
	d->bad = 1;
	return 0;
}

static int64_t next_signed(struct decoder *d, unsigned int size)
{
	uint64_t v = 0;

	for (unsigned int i = 0; i < size; i++)
		v |= (uint64_t)next(d) << 8 * i;
	if (size < 8 && v >> (8 * size - 1) & 1)
		v |= ~0ull << 8 * size;
	return (int64_t)v;
}

static void read_modrm(struct decoder *d)
{
	uint8_t b = next(d), low = b & 7;

	d->has_modrm = 1;
	d->mod = b >> 6;
	d->reg = (uint8_t)((b >> 3 & 7) | (d->rex & REX_R ? 8 : 0));
	d->rm = (uint8_t)(low | (d->rex & REX_B ? 8 : 0));
	if (d->mod == 3)
		return;
	if (low == 4) {
		uint8_t sib = next(d);

		d->sib = 1;
		d->rm = (uint8_t)((sib & 7) | (d->rex & REX_B ? 8 : 0));
		/* with an index, the base alone says nothing */
		if ((sib >> 3 & 7) != 4 || d->rex & REX_X)
			d->rm = 255;
		low = sib & 7;
		if (d->mod == 0 && low == 5) {
			d->rm = 255;
			d->disp = (int32_t)next_signed(d, 4);
			return;
		}
	} else if (d->mod == 0 && low == 5) {
		d->rip = 1;
		d->rm = 255;
		d->disp = (int32_t)next_signed(d, 4);
		return;
	}
	if (d->mod == 1)
		d->disp = (int32_t)next_signed(d, 1);
	else if (d->mod == 2)
		d->disp = (int32_t)next_signed(d, 4);
}

static void read_prefixes(struct decoder *d)
{
	for (;; d->p++) {
		uint8_t b = d->p < d->end ? *d->p : 0;

		if (b == 0x66)
			d->operand16 = 1;
		else if (b == 0xf2 || b == 0xf3)
			d->rep = b;
		else if (b == 0x67)
			d->bad = 1; /* 32-bit addresses: no compiler emits this */
		else if (b != 0x2e && b != 0x36 && b != 0x3e && b != 0x26 && b != 0x64 &&
			 b != 0x65 && b != 0xf0)
			break;
		if (d->p - d->start > 12)
			d->bad = 1;
		if (d->bad)
			return;
	}
	if (d->p < d->end && (*d->p & 0xf0) == 0x40)
		d->rex = *d->p++;
}

/* What follows the opcode, by its letter. */
static void read_operands(struct decoder *d, char letter)
{
	unsigned int z = d->operand16 ? 2 : 4;

	if (letter == 'M' || letter == 'A' || letter == 'B')
		read_modrm(d);
	switch (letter) {
	case '1':
	case 'A':
		d->imm = (int32_t)next_signed(d, 1);
		break;
	case '2':
		next_signed(d, 2);
		break;
	case 'Z':
	case 'B':
		d->imm = (int32_t)next_signed(d, z);
		break;
	case 'V':
		next_signed(d, d->rex & REX_W ? 8 : z);
		break;
	case 'J':
		d->imm = (int32_t)next_signed(d, 4);
		break;
	case 'O':
		next_signed(d, 8);
		break;
	case 'E':
		next_signed(d, 3);
		break;
	case 'X':
	case 'P':
		d->bad = 1;
		break;
	default:
		break;
	}
}

/* test has an immediate, its brothers in the group have none. */
static void read_group3(struct decoder *d)
{
	read_modrm(d);
	if ((d->reg & 7) < 2)
		d->imm = (int32_t)next_signed(d, d->opcode == 0xf6 ? 1 : d->operand16 ? 2 : 4);
}

/* VEX and EVEX: vector instructions, and BMI, which write neither rsp nor rbp in code that we
 * follow. */
static void read_vex(struct decoder *d)
{
	uint8_t b = next(d), map = 1;

	if (d->opcode == 0xc4 || d->opcode == 0x62) {
		map = b & (d->opcode == 0x62 ? 7 : 31);
		d->rex = (uint8_t)(~b >> 5 & 7);
		next(d);
		if (d->opcode == 0x62)
			next(d);
	}
	b = next(d);
	d->map = 0xff;
	if (map == 1 && b == 0x77)
		return; /* vzeroupper */
	read_modrm(d);
	if (d->opcode == 0x62 && d->mod == 1)
		d->disp = 0;
	if (map == 3 || (map == 1 && map0f[b] == 'A'))
		next(d);
	if (map < 1 || map > 3)
		d->bad = 1;
}

static void read_opcode(struct decoder *d)
{
	d->map = 1;
	d->opcode = next(d);
	if (d->opcode == 0x62 || d->opcode == 0xc4 || d->opcode == 0xc5) {
		read_vex(d);
		return;
	}
	if (d->opcode == 0xf6 || d->opcode == 0xf7) {
		read_group3(d);
		return;
	}
	if (d->opcode != 0x0f) {
		read_operands(d, map1[d->opcode]);
		return;
	}
	d->map = 0x0f;
	d->opcode = next(d);
	if (d->opcode == 0x38 || d->opcode == 0x3a) {
		d->map = d->opcode;
		d->opcode = next(d);
		read_operands(d, d->map == 0x38 ? 'M' : 'A');
		return;
	}
	read_operands(d, map0f[d->opcode]);
}

/* ---- what it does ---- */

static void set(struct decoder *d, enum insn_effect effect, int64_t value)
{
	d->in->effect = (uint8_t)effect;
	d->in->value = (int32_t)value;
}

static void flow(struct decoder *d, enum insn_effect effect)
{
	set(d, effect, 0);
	d->in->has_target = 1;
	d->in->target = (d->p - d->start) + (int64_t)d->imm;
}

/* A general-purpose register is overwritten. */
static void write_register(struct decoder *d, unsigned int reg)
{
	if (reg == RSP)
		set(d, INSN_WRITE_SP, 0);
	else if (reg == RBP)
		set(d, INSN_WRITE_FP, 0);
}

/* add, or, adc, sbb, and, sub, xor: from rm to reg, or the other way round. */
static void arithmetic(struct decoder *d)
{
	unsigned int to_reg = d->opcode & 2, what = d->opcode >> 3 & 7;

	if (what == 7 || (d->opcode & 7) > 3 || (!to_reg && d->mod != 3))
		return; /* cmp; al, eax; to memory */
	write_register(d, to_reg ? d->reg : d->rm);
	if (d->in->effect == INSN_WRITE_SP && what == 5)
		set(d, INSN_LOSE_SP, 0);
}

/* The same with an immediate. */
static void arithmetic_immediate(struct decoder *d)
{
	unsigned int what = d->reg & 7;

	if (what == 7 || d->mod != 3)
		return;
	write_register(d, d->rm);
	if (d->in->effect != INSN_WRITE_SP || d->opcode == 0x80 || !(d->rex & REX_W))
		return;
	if (what == 0)
		set(d, INSN_ADD_SP, d->imm);
	else if (what == 5)
		set(d, INSN_ADD_SP, -(int64_t)d->imm);
	else if (what == 4 && d->imm < 0)
		set(d, INSN_LOSE_SP, 0);
}

static void move(struct decoder *d)
{
	unsigned int load = d->opcode == 0x8b;
	unsigned int to = load ? d->reg : d->rm, from = load ? d->rm : d->reg;

	if (d->mod != 3) {
		if (load)
			write_register(d, d->reg);
		else if (d->reg == RBP && d->rm == RSP && d->sib && d->rex & REX_W)
			set(d, INSN_SAVE_FP, d->disp);
		return;
	}
	write_register(d, to);
	if (!(d->rex & REX_W))
		return;
	if (to == RBP && from == RSP)
		set(d, INSN_SET_FP, 0);
	else if (to == RSP && from == RBP)
		set(d, INSN_SP_FROM_FP, 0);
}

static void load_address(struct decoder *d)
{
	write_register(d, d->reg);
	if (d->rip)
		d->in->address = (d->p - d->start) + (int64_t)d->disp;
	if (d->reg != RSP || !(d->rex & REX_W))
		return;
	if (d->rm == RSP)
		set(d, INSN_ADD_SP, d->disp);
	else if (d->rm == RBP)
		set(d, INSN_SP_FROM_FP, d->disp);
}

/* inc, dec, call, jmp, push of a register or memory. */
static void group5(struct decoder *d)
{
	unsigned int what = d->reg & 7;

	if (what < 2 && d->mod == 3)
		write_register(d, d->rm);
	else if (what == 2 || what == 3)
		set(d, INSN_CALL, 0);
	else if (what == 4 || what == 5)
		set(d, INSN_JUMP, 0);
	else if (what == 6)
		set(d, INSN_PUSH, 0);
}

static void push_pop(struct decoder *d)
{
	unsigned int reg = (d->opcode & 7) | (d->rex & REX_B ? 8 : 0);

	if (d->operand16)
		d->bad = 1;
	else if (d->opcode < 0x58)
		set(d, reg == RBP ? INSN_PUSH_FP : INSN_PUSH, 0);
	else if (reg == RSP)
		set(d, INSN_WRITE_SP, 0);
	else
		set(d, reg == RBP ? INSN_POP_FP : INSN_POP, 0);
}

static void effect_two_bytes(struct decoder *d)
{
	uint8_t op = d->opcode;

	if (op >= 0x80 && op <= 0x8f)
		flow(d, INSN_BRANCH);
	else if (op == 0x0b || op == 0xb9 || op == 0xff)
		set(d, INSN_HALT, 0);
	else if (op == 0xa0 || op == 0xa8)
		set(d, INSN_PUSH, 0);
	else if (op == 0xa1 || op == 0xa9)
		set(d, INSN_POP, 0);
	else if (op == 0x1f)
		d->in->nop = 1;
	else if ((op >= 0x40 && op <= 0x4f) || op == 0xaf || op == 0xb6 || op == 0xb7 ||
		 op == 0xbe || op == 0xbf || (op >= 0xb8 && op <= 0xbd && op != 0xba))
		write_register(d, op == 0xbb || op == 0xb9 ? d->rm : d->reg);
	else if (((op >= 0x90 && op <= 0x9f) || op == 0xc0 || op == 0xc1 || op == 0xb0 ||
		  op == 0xb1 || op == 0xa4 || op == 0xa5 || op == 0xac || op == 0xad) &&
		 d->mod == 3)
		write_register(d, d->rm);
	else if (op >= 0xc8 && op <= 0xcf)
		write_register(d, (op & 7) | (d->rex & REX_B ? 8 : 0));
}

/* Opcodes that alone determine the effect. 0: another opcode. */
static int effect_plain(struct decoder *d)
{
	uint8_t op = d->opcode;

	if (op >= 0x50 && op <= 0x5f)
		push_pop(d);
	else if (op == 0x68 || op == 0x6a || op == 0x9c)
		set(d, INSN_PUSH, 0);
	else if (op == 0x9d)
		set(d, INSN_POP, 0);
	else if ((op >= 0x70 && op <= 0x7f) || (op >= 0xe0 && op <= 0xe3))
		flow(d, INSN_BRANCH);
	else if (op == 0xe8)
		flow(d, INSN_CALL);
	else if (op == 0xe9 || op == 0xeb)
		flow(d, INSN_JUMP);
	else if (op == 0xc2 || op == 0xc3 || op == 0xca || op == 0xcb || op == 0xcf)
		set(d, INSN_RETURN, 0);
	else if (op == 0xcc || op == 0xf4 || op == 0xf1)
		set(d, INSN_HALT, 0);
	else if (op == 0xc9)
		set(d, INSN_LEAVE, 0);
	else if (op == 0xc8)
		set(d, INSN_WRITE_SP, 0);
	else if (op == 0x90)
		d->in->nop = 1;
	else
		return 0;
	return 1;
}

static void effect_one_byte(struct decoder *d)
{
	uint8_t op = d->opcode;

	if (effect_plain(d))
		return;
	if (op < 0x40)
		arithmetic(d);
	else if (op == 0x80 || op == 0x81 || op == 0x83)
		arithmetic_immediate(d);
	else if (op == 0x89 || op == 0x8b)
		move(d);
	else if (op == 0x8d)
		load_address(d);
	else if (op == 0x8f)
		set(d, d->mod == 3 && d->rm == RSP ? INSN_WRITE_SP : INSN_POP, 0);
	else if (op == 0xff)
		group5(d);
	else if (op == 0x63 || op == 0x69 || op == 0x6b)
		write_register(d, d->reg);
	else if (op >= 0xb8 && op <= 0xbf)
		write_register(d, (op & 7) | (d->rex & REX_B ? 8 : 0));
	else if (op >= 0x91 && op <= 0x97)
		write_register(d, (op & 7) | (d->rex & REX_B ? 8 : 0));
	else if (op == 0x87 && (d->reg == RSP || d->reg == RBP))
		write_register(d, d->reg);
	else if ((op == 0x87 || op == 0xc7 || op == 0xc1 || op == 0xd1 || op == 0xd3) &&
		 d->mod == 3)
		write_register(d, d->rm);
	else if (op == 0xf7 && (d->reg & 7) >= 2 && (d->reg & 7) <= 3 && d->mod == 3)
		write_register(d, d->rm);
}

int insn_decode(const uint8_t *p, size_t n, struct insn *in)
{
	struct decoder d = {.p = p, .start = p, .end = p + (n < 15 ? n : 15), .in = in};

	memset(in, 0, sizeof(*in));
	read_prefixes(&d);
	if (!d.bad)
		read_opcode(&d);
	if (d.bad)
		return -1;
	in->len = (uint8_t)(d.p - p);
	if (d.map == 1)
		effect_one_byte(&d);
	else if (d.map == 0x0f)
		effect_two_bytes(&d);
	return d.bad ? -1 : 0;
}

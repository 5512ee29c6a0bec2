/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of an instruction and its length, by the opcode maps of the processor manuals. */
#include <fusee/insn.h>

#include <string.h>

#include <fusee/insn_parts.h>

/* What follows an opcode: M modrm; 1, 2 bytes; Z 2 or 4 by operand size; V 4 or 8 by REX.W; J 4; 0
 * nothing; A modrm and 1; B modrm and Z; C modrm of registers, whatever its mod; O an address; E 3
 * bytes; X not an instruction; P handled by another table or function. */
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
				  "P0PP00PP000000MM";

static const char map0f[256 + 1] = "MMMMX00000X0XM0A"
				   "MMMMMMMMMMMMMMMM"
				   "CCCCXXXXMMMMMMMM"
				   "000000X0PXPXXXXX"
				   "MMMMMMMMMMMMMMMM"
				   "MMMMMMMMMMMMMMMM"
				   "MMMMMMMMMMMMMMMM"
				   "AAAAMMM0PMXXMMMM"
				   "JJJJJJJJJJJJJJJJ"
				   "MMMMMMMMMMMMMMMM"
				   "000MAMMM000MAMMM"
				   "MMMMMMMMMMAMMMMM"
				   "MMAMAAAM00000000"
				   "MMMMMMMMMMMMMMMM"
				   "MMMMMMMMMMMMMMMM"
				   "MMMMMMMMMMMMMMMM";

static uint8_t next(struct insn_parts *d)
{
	if (d->p < d->end)
		return *d->p++;
	d->bad = 1;
	return 0;
}

static int64_t next_signed(struct insn_parts *d, unsigned int size)
{
	uint64_t v = 0;

	for (unsigned int i = 0; i < size; i++)
		v |= (uint64_t)next(d) << 8 * i;
	if (size < 8 && v >> (8 * size - 1) & 1)
		v |= ~0ull << 8 * size;
	return (int64_t)v;
}

static void read_registers(struct insn_parts *d)
{
	uint8_t b = next(d);

	d->mod = b >> 6;
	d->reg = (uint8_t)((b >> 3 & 7) | (d->rex & REX_R ? 8 : 0) | (d->rex & REX_R4 ? 16 : 0));
	d->rm = (uint8_t)((b & 7) | (d->rex & REX_B ? 8 : 0));
}

static void read_modrm(struct insn_parts *d)
{
	uint8_t low;

	read_registers(d);
	low = d->rm & 7;
	if (d->mod == 3)
		return;
	if (low == 4) {
		uint8_t sib = next(d);

		low = sib & 7;
		d->rm = (uint8_t)(low | (d->rex & REX_B ? 8 : 0));
		d->base = d->mod == 0 && low == 5 ? NO_REGISTER : d->rm;
		d->scale = (uint8_t)(1u << (sib >> 6));
		if ((sib >> 3 & 7) != 4 || d->rex & REX_X)
			d->index = (uint8_t)((sib >> 3 & 7) | (d->rex & REX_X ? 8 : 0));
		/* with an index, the base alone says nothing */
		if ((sib >> 3 & 7) != 4 || d->rex & REX_X || (d->mod == 0 && low == 5))
			d->rm = NO_REGISTER;
	} else if (d->mod == 0 && low == 5) {
		d->rip = 1;
		d->rm = NO_REGISTER;
	}
	if (d->mod == 1)
		d->disp = (int32_t)next_signed(d, 1);
	else if (d->mod == 2 || low == 5)
		d->disp = (int32_t)next_signed(d, 4);
}

/* A REX prefix counts only right before the opcode. */
static void read_prefixes(struct insn_parts *d)
{
	for (;; d->p++) {
		uint8_t b = d->p < d->end ? *d->p : 0;

		if ((b & 0xf0) == 0x40) {
			d->rex = b;
			continue;
		}
		if (b == 0x66)
			d->operand16 = 1;
		else if (b == 0xf2 || b == 0xf3)
			d->rep = b;
		else if (b == 0x67)
			d->address32 = 1;
		else if (b == 0x64 || b == 0x65)
			d->segment = 1;
		else if (b == 0xf0)
			d->lock = 1;
		else if (b != 0x2e && b != 0x36 && b != 0x3e && b != 0x26)
			break;
		d->rex = 0;
	}
}

static uint8_t mandatory_prefix(const struct insn_parts *d)
{
	return d->rep == 0xf2 ? PP_F2 : d->rep ? PP_F3 : d->operand16 ? PP_66 : PP_NONE;
}

/* Reads what follows the opcode, by its letter. */
static void read_operands(struct insn_parts *d, char letter)
{
	unsigned int z = fusee_insn_operand_is_16(d) ? 2 : 4;

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
	case 'C':
		read_registers(d);
		d->mod = 3;
		break;
	case 'O':
		next_signed(d, d->address32 ? 4 : 8);
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

/* In this group only test, the first two, has an immediate. */
static void read_group3(struct insn_parts *d)
{
	read_modrm(d);
	if ((d->reg & 7) < 2)
		d->imm = (int32_t)next_signed(d, d->opcode == 0xf6             ? 1
						 : fusee_insn_operand_is_16(d) ? 2
									       : 4);
}

/* Reads the operands of a vector instruction. All of map 0F3A and of XOP's map 8 have an immediate;
 * of map 0F those that have one as SSE instructions. */
static void read_vector_operands(struct insn_parts *d)
{
	if (d->form == FORM_VEX && d->map == MAP_0F && d->opcode == 0x77)
		return; /* vzeroupper */
	read_modrm(d);
	if (d->map == MAP_0F3A || d->map == MAP_8 || (d->map == MAP_0F && map0f[d->opcode] == 'A'))
		next(d);
	else if (d->map == MAP_A)
		next_signed(d, 4);
}

/* Reads the byte W vvvv L pp, which the three forms share. */
static void read_vvvv(struct insn_parts *d, uint8_t b)
{
	static const uint8_t pp[] = {PP_NONE, PP_66, PP_F3, PP_F2};

	d->pp = pp[b & 3];
	d->vvvv = (uint8_t)(~b >> 3 & 15);
}

/* Is it an instruction of APX? APX adds EVEX forms of instructions that have only VEX forms: kmov,
 * the BMI instructions, cmpccxadd, rorx, tiles. They are refused, as they can use 32 registers.
 * (Map 4, the prefix d5, and the new bits for bases and indexes are refused in any case.) */
static int is_apx(const struct insn_parts *d)
{
	uint8_t op = d->opcode;

	switch (d->map) {
	case MAP_0F:
		return op >= 0x90 && op <= 0x9f;
	case MAP_0F38:
		return op == 0x49 || op == 0x4b || op >= 0xe0;
	case MAP_0F3A:
		return op >= 0xf0;
	default:
		return 0;
	}
}

/* Reads a VEX, EVEX or XOP prefix. It replaces REX, 66, f2, f3 and 0f, so none of these may precede
 * it. */
static void read_vector(struct insn_parts *d, uint8_t first)
{
	uint8_t b = next(d), payload = b;

	d->bad |= d->rex || d->operand16 || d->rep || d->lock;
	d->form = first == 0x62 ? FORM_EVEX : first == 0x8f ? FORM_XOP : FORM_VEX;
	d->rex = (uint8_t)(~b >> 5 & (first == 0xc5 ? REX_R : REX_R | REX_X | REX_B));
	if (first == 0x62)
		d->rex |= (uint8_t)(~b & REX_R4);
	if (first == 0xc5) {
		d->map = MAP_0F;
		read_vvvv(d, b);
	} else {
		d->map = b & (first == 0x62 ? 7 : 31);
		b = next(d);
		read_vvvv(d, b);
	}
	if (d->form == FORM_EVEX) {
		d->bad |= (payload & 8) || !(b & 4);
		next(d);
	}
	if (d->form == FORM_VEX || d->map < MAP_5)
		d->bad |= d->map < MAP_0F || d->map > MAP_0F3A;
	else
		d->bad |= d->form == FORM_EVEX ? d->map > MAP_6 : d->map < MAP_8 || d->map > MAP_A;
	d->opcode = next(d);
	d->bad |= d->form == FORM_EVEX && is_apx(d);
	if (!d->bad)
		read_vector_operands(d);
}

static void read_0f(struct insn_parts *d)
{
	d->map = MAP_0F;
	d->opcode = next(d);
	if (d->opcode == 0x38 || d->opcode == 0x3a) {
		d->map = d->opcode == 0x38 ? MAP_0F38 : MAP_0F3A;
		d->opcode = next(d);
		read_operands(d, d->map == MAP_0F38 ? 'M' : 'A');
	} else if (d->opcode == 0x78) { /* vmread; extrq and insertq have two immediates */
		read_modrm(d);
		if (d->pp != PP_NONE)
			next_signed(d, 2);
	} else {
		read_operands(d, map0f[d->opcode]);
	}
}

static void read_opcode(struct insn_parts *d)
{
	uint8_t b = next(d);

	d->form = FORM_LEGACY;
	d->pp = mandatory_prefix(d);
	/* XOP shares its first byte with pop, which has no other use of these bits */
	if (b == 0x62 || b == 0xc4 || b == 0xc5 ||
	    (b == 0x8f && d->p < d->end && (*d->p & 31) >= MAP_8)) {
		read_vector(d, b);
		return;
	}
	d->opcode = b;
	if (b == 0xf6 || b == 0xf7)
		read_group3(d);
	else if (b == 0x0f)
		read_0f(d);
	else
		read_operands(d, map1[b]);
}

int fusee_insn_read(const uint8_t *p, size_t n, struct insn_parts *d)
{
	*d = (struct insn_parts){.p = p,
				 .start = p,
				 .end = p + (n < 15 ? n : 15),
				 .base = NO_REGISTER,
				 .index = NO_REGISTER};
	read_prefixes(d);
	read_opcode(d);
	return d->bad ? -1 : 0;
}

int fusee_insn_decode(const uint8_t *p, size_t n, struct insn *in)
{
	struct insn_parts d;

	memset(in, 0, sizeof(*in));
	if (fusee_insn_read(p, n, &d))
		return -1;
	d.in = in;
	in->len = (uint8_t)(d.p - p);
	fusee_insn_effect(&d);
	return d.bad ? -1 : 0;
}

int fusee_insn_writes_top(const uint8_t *p, size_t n)
{
	uint8_t reg;

	if (n && (p[0] & 0xf0) == 0x40) {
		p++;
		n--;
	}
	if (n < 3 || (p[1] & 0xc7) != 0x04 || p[2] != 0x24)
		return 0;
	reg = p[1] >> 3 & 7;
	switch (p[0]) {
	case 0x01: /* add, or, and, sub, xor, xchg, mov of a register */
	case 0x09:
	case 0x21:
	case 0x29:
	case 0x31:
	case 0x87:
	case 0x89:
		return 1;
	case 0x81: /* of a number; cmp writes nothing */
	case 0x83:
		return reg != 7;
	case 0xc7: /* mov */
		return !reg;
	case 0xff: /* inc, dec */
		return reg < 2;
	default:
		return 0;
	}
}

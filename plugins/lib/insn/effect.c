/* SPDX-License-Identifier: Apache-2.0 */
/* What an instruction does to sp, to rbp and to the flow. Tables, made from the opcode maps of the
 * processor manuals, say which general-purpose registers an instruction writes. Which value it
 * writes is known for the few instructions by which compilers change sp and rbp. */
#include <fusee/insn_parts.h>

/* Registers that opcodes write: E that of modrm.rm, if it is no address; G that of modrm.reg; O
 * that of the opcode; B both of E and G; e, g, o, b the same of 1 byte; ? by the table below; .
 * none that could be rsp or rbp, or handled by a function. */
static const char writes1[256 + 1] = "eEgG....eEgG...."
				     "eEgG....eEgG...."
				     "eEgG....eEgG...."
				     "eEgG............"
				     "................"
				     "................"
				     "...G.....G.G...."
				     "................"
				     "??.?..bBeEgGEG.."
				     "OOOOOOOO........"
				     "................"
				     "ooooooooOOOOOOOO"
				     "eE....eE........"
				     "eEeE............"
				     "................"
				     "......??......??";

static const char writes0f[256 + 1] = "??GG............"
				      "..............?."
				      "EE..........??.."
				      "................"
				      "GGGGGGGGGGGGGGGG"
				      "G..............."
				      "................"
				      "........?.....?."
				      "................"
				      "eeeeeeeeeeeeeeee"
				      "....EE.....EEE?G"
				      "eEGEGGGGG.?EGGGG"
				      "bB...G.?OOOOOOOO"
				      ".......G........"
				      "................"
				      "................";

/* Instructions that depend on a prefix or on modrm.reg. V: they write the register of VEX.vvvv; D:
 * that and the register of modrm.reg. */
static const struct {
	uint8_t form, map, first, last, pp, regs; /* regs: a bit of each value of modrm.reg */
	char what;
} writes[] = {
	{FORM_LEGACY, MAP_ONE, 0x80, 0x80, 15, 0x7f, 'e'},
	{FORM_LEGACY, MAP_ONE, 0x81, 0x83, 15, 0x7f, 'E'},
	{FORM_LEGACY, MAP_ONE, 0xf6, 0xf6, 15, 0x0c, 'e'}, /* not, neg */
	{FORM_LEGACY, MAP_ONE, 0xf7, 0xf7, 15, 0x0c, 'E'},
	{FORM_LEGACY, MAP_ONE, 0xfe, 0xfe, 15, 0x03, 'e'}, /* inc, dec */
	{FORM_LEGACY, MAP_ONE, 0xff, 0xff, 15, 0x03, 'E'},
	{FORM_LEGACY, MAP_0F, 0x00, 0x00, 15, 0x03, 'E'},              /* sldt, str */
	{FORM_LEGACY, MAP_0F, 0x01, 0x01, 15, 0x10, 'E'},              /* smsw */
	{FORM_LEGACY, MAP_0F, 0x1e, 0x1e, PP_F3, 0x02, 'E'},           /* rdssp */
	{FORM_LEGACY, MAP_0F, 0x2c, 0x2d, PP_F3 | PP_F2, 0xff, 'G'},   /* cvttsd2si */
	{FORM_LEGACY, MAP_0F, 0x78, 0x78, PP_NONE, 0xff, 'E'},         /* vmread */
	{FORM_LEGACY, MAP_0F, 0x7e, 0x7e, PP_NONE | PP_66, 0xff, 'E'}, /* movd, movq */
	{FORM_LEGACY, MAP_0F, 0xae, 0xae, PP_F3, 0x03, 'E'},           /* rdfsbase, rdgsbase */
	{FORM_LEGACY, MAP_0F, 0xba, 0xba, 15, 0xe0, 'E'},              /* bts, btr, btc */
	{FORM_LEGACY, MAP_0F, 0xc7, 0xc7, PP_NONE | PP_66, 0x40, 'E'}, /* rdrand */
	{FORM_LEGACY, MAP_0F, 0xc7, 0xc7, 15, 0x80, 'E'},              /* rdseed, rdpid */
	{FORM_LEGACY, MAP_0F38, 0xf0, 0xf0, 15, 0xff, 'G'},            /* movbe, crc32 */
	{FORM_LEGACY, MAP_0F38, 0xf1, 0xf1, PP_F2, 0xff, 'G'},         /* crc32 */
	{FORM_LEGACY, MAP_0F38, 0xf6, 0xf6, PP_66 | PP_F3, 0xff, 'G'}, /* adcx, adox */
	{FORM_LEGACY, MAP_0F38, 0xfa, 0xfb, PP_F3, 0xff, 'G'},         /* encodekey */
	{FORM_LEGACY, MAP_0F3A, 0x14, 0x17, PP_66, 0xff, 'E'},         /* pextr, extractps */
	{FORM_VEX | FORM_EVEX, MAP_0F, 0x2c, 0x2d, PP_F3 | PP_F2, 0xff, 'G'},
	{FORM_EVEX, MAP_0F, 0x78, 0x79, PP_F3 | PP_F2, 0xff, 'G'}, /* vcvttsd2usi */
	{FORM_VEX, MAP_0F, 0x50, 0x50, 15, 0xff, 'G'},             /* vmovmskps */
	{FORM_VEX | FORM_EVEX, MAP_0F, 0x7e, 0x7e, PP_66, 0xff, 'E'},
	{FORM_VEX, MAP_0F, 0x93, 0x93, 15, 0xff, 'G'},                /* kmov */
	{FORM_VEX | FORM_EVEX, MAP_0F, 0xc5, 0xc5, PP_66, 0xff, 'G'}, /* vpextrw */
	{FORM_VEX, MAP_0F, 0xd7, 0xd7, 15, 0xff, 'G'},                /* vpmovmskb */
	{FORM_VEX, MAP_0F38, 0xe0, 0xef, PP_66, 0xff, 'G'},           /* cmpccxadd */
	{FORM_VEX, MAP_0F38, 0xf2, 0xf2, 15, 0xff, 'G'},              /* andn */
	{FORM_VEX, MAP_0F38, 0xf3, 0xf3, 15, 0x0e, 'V'},              /* blsr, blsmsk, blsi */
	{FORM_VEX, MAP_0F38, 0xf5, 0xf5, 15, 0xff, 'G'},              /* bzhi, pext, pdep */
	{FORM_VEX, MAP_0F38, 0xf6, 0xf6, 15, 0xff, 'D'},              /* mulx */
	{FORM_VEX, MAP_0F38, 0xf7, 0xf7, 15, 0xff, 'G'},              /* bextr, shlx, sarx, shrx */
	{FORM_VEX | FORM_EVEX, MAP_0F3A, 0x14, 0x17, PP_66, 0xff, 'E'},
	{FORM_VEX, MAP_0F3A, 0xf0, 0xf0, 15, 0xff, 'G'},  /* rorx */
	{FORM_EVEX, MAP_5, 0x2c, 0x2d, PP_F3, 0xff, 'G'}, /* vcvttsh2si */
	{FORM_EVEX, MAP_5, 0x78, 0x79, PP_F3, 0xff, 'G'},
	{FORM_EVEX, MAP_5, 0x7e, 0x7e, PP_66, 0xff, 'E'}, /* vmovw */
	{FORM_XOP, MAP_9, 0x01, 0x02, 15, 0xfe, 'V'},     /* blcfill and others */
	{FORM_XOP, MAP_9, 0x12, 0x12, 15, 0x02, 'E'},     /* slwpcb */
	{FORM_XOP, MAP_A, 0x10, 0x10, 15, 0xff, 'G'},     /* bextr */
};

static void set(struct insn_parts *d, enum insn_effect effect, int64_t value)
{
	d->in->effect = (uint8_t)effect;
	d->in->value = (int32_t)value;
}

static void flow(struct insn_parts *d, enum insn_effect effect)
{
	set(d, effect, 0);
	d->in->has_target = 1;
	d->in->target = (d->p - d->start) + (int64_t)d->imm;
}

/* ---- registers that are written ---- */

static void write_register(struct insn_parts *d, unsigned int reg)
{
	if (reg != RSP && reg != RBP && reg < 16)
		d->in->written |= (uint16_t)(1u << reg);
	if (reg == RSP)
		set(d, INSN_WRITE_SP, 0);
	else if (reg == RBP && d->in->effect != INSN_WRITE_SP)
		set(d, INSN_WRITE_FP, 0);
}

/* Without REX the byte registers 4 to 7 are ah, ch, dh and bh. */
static void write_byte(struct insn_parts *d, unsigned int reg)
{
	if (d->rex)
		write_register(d, reg);
	else
		d->in->written |= (uint16_t)(1u << (reg & 3));
}

/* Registers that instructions write without an operand for them. Where it is not exact, it has too
 * many: compilers keep no copy of rsp in them there. */
enum { RAX = 1, RCX = 2, RDX = 4, RBX = 8, RSI = 64, RDI = 128, R11 = 2048 };
#define MANY (RAX | RCX | RDX | RBX | RSI | RDI | R11)

static unsigned int hidden_one(const struct insn_parts *d)
{
	uint8_t op = d->opcode;

	if ((op >= 0x6c && op <= 0x6f) || (op >= 0xa4 && op <= 0xa7) || (op >= 0xaa && op <= 0xaf))
		return RSI | RDI | RCX | RAX;
	if (op < 0x40)
		return (op & 7) == 4 || (op & 7) == 5 ? RAX : 0;
	if (op == 0x90)
		return d->rex & REX_B ? RAX : 0;
	if (op == 0x98 || op == 0x9f || op == 0xa0 || op == 0xa1 || op == 0xd7 || op == 0xdf ||
	    op == 0xe4 || op == 0xe5 || op == 0xec || op == 0xed || (op > 0x90 && op <= 0x97))
		return RAX;
	if (op == 0x99)
		return RDX;
	if (op >= 0xe0 && op <= 0xe3)
		return RCX;
	if (op == 0xf6 || op == 0xf7)
		return (d->reg & 7) >= 4 ? RAX | RDX : 0;
	return op == 0xc6 || op == 0xc7 || op == 0xcd || op == 0xf1 || op == 0xcc ? RAX : 0;
}

static unsigned int hidden_0f(const struct insn_parts *d)
{
	uint8_t op = d->opcode;

	if (op < 0x0d || (op >= 0x30 && op <= 0x37) || op == 0xa2 || op == 0xa6 || op == 0xa7 ||
	    op == 0xaa || op == 0xc7)
		return MANY;
	return op == 0xb0 || op == 0xb1 ? RAX : 0;
}

/* The registers that a callee may change. */
#define VOLATILE (RAX | RCX | RDX | RSI | RDI | 0xf00u)

static void write_hidden(struct insn_parts *d)
{
	unsigned int regs = 0;

	if (d->form == FORM_LEGACY && d->map == MAP_ONE)
		regs = hidden_one(d);
	else if (d->form == FORM_LEGACY && d->map == MAP_0F)
		regs = hidden_0f(d);
	if (d->in->effect == INSN_CALL)
		regs |= VOLATILE;
	if (d->map == MAP_0F3A && d->opcode >= 0x60 && d->opcode <= 0x63)
		regs |= RCX;
	if (d->form == FORM_LEGACY && d->map == MAP_0F38 && d->opcode >= 0xc8)
		regs |= RAX;
	d->in->written |= (uint16_t)regs;
}

/* Has the table `writes` an entry for this opcode, in any map? It saves most instructions the
 * search. */
static int is_listed(uint8_t op)
{
	switch (op) {
	case 0x00 ... 0x02:
	case 0x10:
	case 0x12:
	case 0x14 ... 0x17:
	case 0x1e:
	case 0x2c ... 0x2d:
	case 0x50:
	case 0x78 ... 0x79:
	case 0x7e:
	case 0x80 ... 0x83:
	case 0x93:
	case 0xae:
	case 0xba:
	case 0xc5:
	case 0xc7:
	case 0xd7:
	case 0xe0 ... 0xff:
		return 1;
	default:
		return 0;
	}
}

static char what_is_written(const struct insn_parts *d)
{
	char what = '?';

	if (d->form == FORM_LEGACY && d->map <= MAP_0F)
		what = (d->map ? writes0f : writes1)[d->opcode];
	if (what == '?' && !is_listed(d->opcode))
		return '.';
	for (size_t i = 0; what == '?' && i < sizeof(writes) / sizeof(writes[0]); i++)
		if (writes[i].form & d->form && writes[i].map == d->map &&
		    d->opcode >= writes[i].first && d->opcode <= writes[i].last &&
		    writes[i].pp & d->pp && writes[i].regs >> (d->reg & 7) & 1)
			what = writes[i].what;
	return what;
}

static void write_operands(struct insn_parts *d)
{
	unsigned int low = (d->opcode & 7) | (d->rex & REX_B ? 8 : 0);
	char what = what_is_written(d);

	if (what == 'O' && (d->opcode != 0x90 || d->map || d->rex & REX_B)) /* nop is no xchg */
		write_register(d, low);
	else if (what == 'o')
		write_byte(d, low);
	if (what == 'G' || what == 'B' || what == 'D')
		write_register(d, d->reg);
	if (what == 'V' || what == 'D')
		write_register(d, d->vvvv);
	if (what == 'g' || what == 'b')
		write_byte(d, d->reg);
	if (d->mod == 3 && (what == 'E' || what == 'B'))
		write_register(d, d->rm);
	if (d->mod == 3 && (what == 'e' || what == 'b'))
		write_byte(d, d->rm);
}

/* ---- what is written, where that is known ---- */

/* Is the address the base and the displacement, and nothing else? */
static int is_plain(const struct insn_parts *d)
{
	return d->mod != 3 && !d->address32;
}

/* sub %reg,%rsp and with it from memory */
static void subtract(struct insn_parts *d)
{
	unsigned int to = d->opcode == 0x2b ? d->reg : d->rm;

	if (to == RSP && d->rex & REX_W && (d->opcode == 0x2b || d->mod == 3))
		set(d, INSN_LOSE_SP, 0);
}

static void arithmetic_immediate(struct insn_parts *d)
{
	unsigned int what = d->reg & 7;

	if (d->mod != 3 || d->rm != RSP || !(d->rex & REX_W))
		return;
	if (what == 0)
		set(d, INSN_ADD_SP, d->imm);
	else if (what == 5)
		set(d, INSN_ADD_SP, -(int64_t)d->imm);
	else if (what == 4 && d->imm < 0)
		set(d, INSN_LOSE_SP, 0);
}

static void copy(struct insn_parts *d, enum insn_copy copy, unsigned int reg, int32_t at)
{
	d->in->copy = (uint8_t)copy;
	d->in->reg = (uint8_t)reg;
	d->in->at = at;
}

static int is_other(unsigned int reg)
{
	return reg != RSP && reg != RBP && reg < 16;
}

/* mov with copies of rsp */
static void move_copy(struct insn_parts *d, int load, unsigned int to, unsigned int from)
{
	if (d->mod == 3) {
		if (from == RSP && is_other(to))
			copy(d, INSN_COPY_SP, to, 0);
		else if (to == RSP && is_other(from))
			copy(d, INSN_COPY_TO_SP, from, 0);
		else if (to == RBP && is_other(from))
			copy(d, INSN_COPY_SET_FP, from, 0);
		return;
	}
	if (!is_plain(d) || d->segment || d->rip)
		return;
	if (load && to == RBP && is_other(from))
		copy(d, INSN_COPY_TO_FP, from, d->disp);
	else if (!load && to == RSP)
		copy(d, from == RBP ? INSN_COPY_SAVE_FP : INSN_COPY_SAVE, from, d->disp);
	else if (load && from == RBP && is_other(to) && d->disp < 0 && d->disp >= -INSN_NEAR_FP &&
		 d->disp % 8 == 0)
		copy(d, INSN_COPY_LOAD_BY_FP, to, d->disp);
	else if (load && from == RSP)
		copy(d,
		     to == RBP   ? INSN_COPY_LOAD_FP
		     : to == RSP ? INSN_COPY_LOAD_SP
				 : INSN_COPY_LOAD,
		     to, d->disp);
}

static void move(struct insn_parts *d)
{
	unsigned int load = d->opcode == 0x8b;
	unsigned int to = load ? d->reg : d->rm, from = load ? d->rm : d->reg;

	if (!(d->rex & REX_W))
		return;
	move_copy(d, load, to, from);
	if (d->mod == 3 && to == RBP && from == RSP)
		set(d, INSN_SET_FP, 0);
	else if (d->mod == 3 && to == RSP && from == RBP)
		set(d, INSN_SP_FROM_FP, 0);
	else if (!load && is_plain(d) && !d->segment && to == RSP && from == RBP)
		set(d, INSN_SAVE_FP, d->disp);
	else if (load && is_plain(d) && !d->segment && to == RBP && from == RSP)
		set(d, INSN_LOAD_FP, d->disp);
}

static void load_address(struct insn_parts *d)
{
	if (d->mod == 3) { /* not an instruction */
		d->bad = 1;
		return;
	}
	if (d->reg == RSP && d->index != NO_REGISTER && d->rex & REX_W && !d->address32)
		set(d, INSN_LOSE_SP, 0);
	if (!is_plain(d))
		return;
	if (d->rip)
		d->in->address = (d->p - d->start) + (int64_t)d->disp;
	if (!(d->rex & REX_W))
		return;
	if (d->rm == RSP && is_other(d->reg))
		copy(d, INSN_COPY_SP, d->reg, d->disp);
	else if (d->reg == RSP && is_other(d->rm) && !d->rip)
		copy(d, INSN_COPY_TO_SP, d->rm, d->disp);
	if (d->reg == RSP && d->rm == RSP)
		set(d, INSN_ADD_SP, d->disp);
	else if (d->reg == RSP && d->rm == RBP)
		set(d, INSN_SP_FROM_FP, d->disp);
	else if (d->reg == RBP && d->rm == RSP)
		set(d, INSN_SET_FP, d->disp);
}

/* ---- the stack and the flow ---- */

static void push_pop(struct insn_parts *d)
{
	unsigned int reg = (d->opcode & 7) | (d->rex & REX_B ? 8 : 0);

	if (d->opcode < 0x58)
		set(d, reg == RBP ? INSN_PUSH_FP : INSN_PUSH, 0);
	else if (reg == RSP)
		set(d, INSN_WRITE_SP, 0);
	else
		set(d, reg == RBP ? INSN_POP_FP : INSN_POP, 0);
	if (is_other(reg))
		copy(d, d->opcode < 0x58 ? INSN_COPY_PUSH_REG : INSN_COPY_POP_REG, reg, 0);
	if (d->opcode >= 0x58 && is_other(reg))
		d->in->written |= (uint16_t)(1u << reg);
}

/* 2 bytes are pushed, popped or, by leave, written to bp: no compiler does that. */
static void narrow(struct insn_parts *d)
{
	if (fusee_insn_operand_is_16(d))
		set(d, INSN_WRITE_SP, 0);
}

/* call, jmp, push of a register or memory; inc and dec are in the table. */
static void group5(struct insn_parts *d)
{
	unsigned int what = d->reg & 7;

	if (d->rip && !d->address32 && !d->segment && (what == 2 || what == 4))
		d->in->slot = (d->p - d->start) + (int64_t)d->disp;
	if (what == 2 || what == 3)
		set(d, INSN_CALL, 0);
	else if (what == 4 || what == 5)
		set(d, INSN_JUMP, 0);
	else if (what == 6) {
		set(d, d->mod == 3 && d->rm == RBP ? INSN_PUSH_FP : INSN_PUSH, 0);
		if (is_plain(d) && !d->segment && d->rm == RSP)
			copy(d, INSN_COPY_PUSH, RSP, d->disp);
		else if (d->mod == 3 && is_other(d->rm))
			copy(d, INSN_COPY_PUSH_REG, d->rm, 0);
		narrow(d);
	}
}

static void pop_group(struct insn_parts *d)
{
	if (d->mod == 3)
		set(d, d->rm == RSP ? INSN_WRITE_SP : d->rm == RBP ? INSN_POP_FP : INSN_POP, 0);
	else
		set(d, INSN_POP, 0);
	if (d->mod == 3 && is_other(d->rm)) {
		copy(d, INSN_COPY_POP_REG, d->rm, 0);
		d->in->written |= (uint16_t)(1u << d->rm);
	}
	narrow(d);
}

static void effect_0f(struct insn_parts *d)
{
	uint8_t op = d->opcode;

	if (op >= 0x80 && op <= 0x8f)
		flow(d, INSN_BRANCH);
	else if (op == 0x0b || op == 0xb9 || op == 0xff) /* ud2, ud1, ud0 */
		set(d, INSN_HALT, 0);
	else if (op == 0x07 || op == 0x35 || op == 0xaa) /* sysret, sysexit, rsm */
		set(d, INSN_HALT, 0);
	else if (op == 0x01 && d->pp == PP_F3 && d->mod == 3 && (d->reg & 7) == 5 &&
		 (d->rm & 7) == 4)
		set(d, INSN_HALT, 0); /* uiret */
	else if (op == 0x34)          /* sysenter: its return sets sp */
		set(d, INSN_WRITE_SP, 0);
	else if (op == 0xa0 || op == 0xa8) /* push, pop of fs, gs */
		set(d, INSN_PUSH, 0);
	else if (op == 0xa1 || op == 0xa9)
		set(d, INSN_POP, 0);
	else if (op == 0x1f)
		d->in->nop = 1;
	if (op == 0xa0 || op == 0xa8 || op == 0xa1 || op == 0xa9)
		narrow(d);
}

/* Jumps, calls, returns and traps. 0: another opcode. */
static int effect_flow(struct insn_parts *d)
{
	uint8_t op = d->opcode;

	if ((op >= 0x70 && op <= 0x7f) || (op >= 0xe0 && op <= 0xe3))
		flow(d, INSN_BRANCH);
	else if (op == 0xc7 && d->mod == 3 && (d->reg & 7) == 7)
		flow(d, INSN_BRANCH); /* xbegin */
	else if (op == 0xe8)
		flow(d, INSN_CALL);
	else if (op == 0xe9 || op == 0xeb)
		flow(d, INSN_JUMP);
	else if (op == 0xc3)
		set(d, INSN_RETURN, 0);
	else if (op == 0xc2 || op == 0xca || op == 0xcb || op == 0xcf)
		set(d, INSN_ODD_RETURN, 0);
	else if (op == 0xcc || op == 0xf4 || op == 0xf1) /* int3, hlt, int1 */
		set(d, INSN_HALT, 0);
	else if (op == 0xff)
		group5(d);
	else
		return 0;
	return 1;
}

static void effect_one(struct insn_parts *d)
{
	uint8_t op = d->opcode;

	if (effect_flow(d))
		return;
	if (op >= 0x50 && op <= 0x5f)
		push_pop(d);
	else if (op == 0x68 || op == 0x6a || op == 0x9c)
		set(d, INSN_PUSH, 0);
	else if (op == 0x9d)
		set(d, INSN_POP, 0);
	else if (op == 0x8f)
		pop_group(d);
	else if (op == 0xc9)
		set(d, INSN_LEAVE, 0);
	else if (op == 0xc8) /* enter */
		set(d, INSN_WRITE_SP, 0);
	else if (op == 0x29 || op == 0x2b)
		subtract(d);
	else if (op == 0x81 || op == 0x83)
		arithmetic_immediate(d);
	else if (op == 0x89 || op == 0x8b)
		move(d);
	else if (op == 0x8d)
		load_address(d);
	else if (op == 0x90)
		d->in->nop = !(d->rex & REX_B) && d->rep != 0xf3; /* xchg, pause */
	if ((op >= 0x50 && op <= 0x5f) || op == 0x68 || op == 0x6a || op == 0x9c || op == 0x9d ||
	    op == 0xc9)
		narrow(d);
}

/* Refuses branches with prefix 66 and without REX.W: processors of Intel ignore the prefix, those
 * of AMD use 16 bits of the address. */
static void refuse_narrow_branch(struct insn_parts *d)
{
	switch (d->in->effect) {
	case INSN_CALL:
	case INSN_JUMP:
	case INSN_BRANCH:
	case INSN_RETURN:
	case INSN_ODD_RETURN:
		d->bad |= fusee_insn_operand_is_16(d);
		break;
	default:
		break;
	}
}

static void use_fp(struct insn_parts *d)
{
	if (!is_plain(d) || d->segment || d->rm != RBP || d->in->nop)
		return;
	if (d->disp < 0)
		d->in->by_fp = INSN_BELOW_FP;
	else if (d->disp < 16)
		d->in->by_fp = INSN_AT_FP;
}

void fusee_insn_effect(struct insn_parts *d)
{
	write_operands(d);
	if (d->form == FORM_LEGACY && d->map == MAP_ONE)
		effect_one(d);
	else if (d->form == FORM_LEGACY && d->map == MAP_0F)
		effect_0f(d);
	write_hidden(d);
	use_fp(d);
	refuse_narrow_branch(d);
}

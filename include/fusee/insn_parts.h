/* SPDX-License-Identifier: Apache-2.0 */
/* fusee/insn_parts.h - the parts of one x86-64 instruction; of the same library as <fusee/insn.h>.
 */
#ifndef FUSEE_INSN_PARTS_H
#define FUSEE_INSN_PARTS_H

#include <fusee/insn.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { RSP = 4, RBP = 5 };
enum { REX_B = 1, REX_X = 2, REX_R = 4, REX_W = 8, REX_R4 = 16 };
enum { FORM_LEGACY = 1, FORM_VEX = 2, FORM_EVEX = 4, FORM_XOP = 8 };
/* The numbers are those in VEX, EVEX and XOP prefixes. 0: opcodes of one byte. */
enum { MAP_ONE, MAP_0F, MAP_0F38, MAP_0F3A, MAP_5 = 5, MAP_6, MAP_8 = 8, MAP_9, MAP_A };
/* The prefix that is part of an opcode. */
enum { PP_NONE = 1, PP_66 = 2, PP_F3 = 4, PP_F2 = 8 };

#define NO_REGISTER 255

struct insn_parts {
	const uint8_t *p, *start, *end;
	struct insn *in;
	uint8_t rex; /* 0x40 to 0x4f, 0: none; of other forms its bits alone */
	uint8_t operand16, rep, lock;
	uint8_t address32, segment; /* 1: an address is not what its registers say */
	uint8_t form, map, opcode, pp;
	uint8_t mod, reg, rm, vvvv; /* with all their bits; rm: the base of an address, too */
	uint8_t base, index, scale; /* of an address with SIB; NO_REGISTER: none */
	int rip;                    /* the address is relative to pc */
	int32_t disp, imm;
	int bad;
};

static inline int fusee_insn_operand_is_16(const struct insn_parts *d)
{
	return d->operand16 && !(d->rex & REX_W);
}

/* As fusee_insn_decode(); sets all but `in`, `start` and the effect. */
int fusee_insn_read(const uint8_t *p, size_t n, struct insn_parts *);
/* Sets what d->in says beside the length. */
void fusee_insn_effect(struct insn_parts *);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the counter of code objects, by the instructions of the function that makes them. */
#include "find.h"

#define NEAR 64u           /* bytes from a load to the store, or from lea to the load, at most */
#define LEAST_OFFSET 1024u /* the counter's least offset in the interpreter's state */
#define MOST_OFFSET (1u << 24)

/* A u32 in memory that an instruction loads or stores. */
struct operand {
	uint64_t at;  /* vaddr, or offset from the register; 0: another kind of operand */
	uint32_t reg; /* number of the base register's low three bits; 8: none */
	uint32_t end; /* of the instruction, from the function's beginning */
};

/* The address that a `lea N(%rip),%reg` near before byte i puts into the register; 0: there is
 * none. */
static uint64_t address_in(struct fusee_code c, uint32_t i, uint32_t reg)
{
	uint32_t from = i > NEAR ? i - NEAR : 0;

	for (uint32_t k = i; k-- > from;)
		if ((c.at[k] & 0xfb) == 0x48 && k + 7 <= i && c.at[k + 1] == 0x8d &&
		    (c.at[k + 2] & 0xc7) == 5 && (uint32_t)(c.at[k + 2] >> 3 & 7) == reg)
			return fusee_code_target(&c, k + 7);
	return 0;
}

/* Decodes the memory operand, of 4 bytes, of the instruction whose opcode is byte i. */
static struct operand operand_at(struct fusee_code c, uint32_t i, int in_struct)
{
	uint32_t mod = c.at[i + 1] >> 6, rm = c.at[i + 1] & 7, disp = fusee_code_u32(c.at + i + 2);
	struct operand o = {.reg = 8, .end = i + 6};

	if (i && (c.at[i - 1] & 0xf8) == 0x48) /* 8 bytes */
		return o;
	if (in_struct) {
		if (mod == 2 && rm != 4 && disp >= LEAST_OFFSET && disp < MOST_OFFSET) {
			o.at = disp;
			o.reg = rm;
		}
	} else if (!mod && rm == 5) {
		o.at = fusee_code_target(&c, i + 6);
	} else if (!mod && rm != 4) {
		o.end = i + 2;
		o.at = address_in(c, i, rm);
		o.reg = rm;
	}
	return o;
}

/* Is there an instruction in [from, to) that adds 1? */
static int is_raised(struct fusee_code c, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i + 3 <= to; i++) {
		const unsigned char *p = c.at + i;

		if ((p[0] == 0x83 && (p[1] & 0xf8) == 0xc0 && p[2] == 1) || /* add $1 */
		    (p[0] == 0x8d && p[1] >> 6 == 1 && p[2] == 1) ||        /* lea 1(%r) */
		    (p[0] == 0xff && (p[1] & 0xf8) == 0xc0))                /* inc */
			return 1;
	}
	return 0;
}

/* Is the value of this load stored again where it was, with 1 added? */
static int is_counted(struct fusee_code c, struct operand load, int in_struct)
{
	for (uint32_t i = load.end; i < load.end + NEAR && i + 6 <= c.n; i++) {
		struct operand store;

		if (c.at[i] != 0x89)
			continue;
		store = operand_at(c, i, in_struct);
		if (store.at == load.at && store.reg == load.reg && is_raised(c, load.end, i))
			return 1;
	}
	return 0;
}

uint64_t python_find_counter(struct fusee_code c, int in_struct)
{
	uint64_t found = 0;

	for (uint32_t i = 0; i + 6 <= c.n; i++) {
		struct operand load;

		if (c.at[i] != 0x8b)
			continue;
		load = operand_at(c, i, in_struct);
		if (!load.at || !is_counted(c, load, in_struct))
			continue;
		if (found && found != load.at)
			return 0;
		found = load.at;
	}
	return found;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Both native steps over a table, registers and a stack of noise: they end, inside their memory,
 * lead up, and a stop has a reason that its unwinder names. */
// sources: plugins/unwinders/dwarf/dwarf.bpf.c plugins/unwinders/framepointer/framepointer.bpf.c
#include "fuzz.h"
#include <stddef.h>

#include <fusee/unwinder.bpf.h>

#include "../../plugins/unwinders/dwarf/reasons.h"
#include "../../plugins/unwinders/dwarf/table.h"

int fusee_step_dwarf(struct fusee_unwind *u);
int fusee_step_framepointer(struct fusee_unwind *u);

#define STACK 0x7f0000000000ull
#define CODE 0x400000ull
#define FRAMEPOINTER_REASONS 5u

enum how {
	HEADER = 1,    /* the table's header is right: lookups get as far as its rows */
	PLAIN = 2,     /* no special rules: each step must lead up */
	EXACT = 4,     /* begin at an interrupted instruction */
	FP_LOST = 8,   /* begin without a frame pointer */
	IN_STACK = 16, /* begin where the code's bytes can be read */
	FOLLOW = 32,   /* callee-saved registers are followed */
};

struct input {
	uint8_t how, table_share; /* of 256: bytes that are table, the rest is stack */
	uint16_t fp, valid_regs, pc;
	uint64_t regs[16];
};

static void right_header(uint32_t *table, uint32_t words, uint32_t specials)
{
	uint32_t rest = words - DWARF_HEADER_WORDS, blocks = rest / 8 + 1;
	uint32_t at = words - specials * DWARF_SPECIAL_WORDS;

	table[DWARF_LO] = CODE;
	table[DWARF_LO_HIGH] = 0;
	table[DWARF_BLOCKS] = blocks;
	table[DWARF_INDEX_AT] = DWARF_HEADER_WORDS;
	table[DWARF_ROWS_AT] = DWARF_HEADER_WORDS + blocks;
	table[DWARF_ROWS] = at > DWARF_HEADER_WORDS + blocks ? at - DWARF_HEADER_WORDS - blocks : 0;
	table[DWARF_SPECIALS_AT] = at;
	table[DWARF_SPECIALS] = specials;
	for (uint32_t b = 0; b < blocks && DWARF_HEADER_WORDS + b < words; b++)
		table[DWARF_HEADER_WORDS + b] %= (table[DWARF_ROWS] + 1) << 8;
	/* Half of the special rules name a rule that exists. */
	for (uint32_t i = DWARF_HEADER_WORDS + blocks; i < at && specials; i++)
		if (table[i] >> 30 == 3 && table[i] & 0x20000000)
			table[i] = (DWARF_RULE_SPECIAL((table[i] >> 16) % specials) << 16) |
				   (table[i] & 0xffff);
	for (uint32_t i = at; i + DWARF_SPECIAL_WORDS <= words; i += DWARF_SPECIAL_WORDS)
		table[i] = (table[i] & ~0xffu) | (table[i] & 0xff) % (DWARF_GO_GROWS + 2);
}

static void check(const struct fusee_unwind *u, int by_dwarf, int r, uint64_t sp, int how)
{
	if (r != FUSEE_NEXT && r != FUSEE_STOP && !(by_dwarf && r == FUSEE_PASS))
		abort();
	if (u->error >= (by_dwarf ? (uint32_t)DWARF_REASONS : FRAMEPOINTER_REASONS))
		abort();
	if (r != FUSEE_STOP && u->error)
		abort();
	if (!by_dwarf && r == FUSEE_STOP && !u->error) /* a chain's end is never complete */
		abort();
	if (r == FUSEE_NEXT && u->sp <= sp && (!by_dwarf || how & PLAIN))
		abort();
}

static void walk(struct fusee_native *n, int how, uint32_t text)
{
	struct fusee_unwind *u = &n->u;

	for (int i = 0; i < 1024; i++) {
		uint64_t sp = u->sp;
		int r;

		u->offset = how & HEADER ? CODE + u->pc % text : u->pc;
		u->error = 0;
		r = fusee_step_dwarf(u);
		check(u, 1, r, sp, how);
		if (r == FUSEE_PASS) {
			r = fusee_step_framepointer(u);
			check(u, 0, r, sp, how);
		}
		if (r != FUSEE_NEXT)
			break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fusee_native n = {0};
	struct input in;
	size_t words, stack_len;
	uint32_t *table, specials;
	uint8_t *stack;

	if (size < sizeof(in) + 8)
		return 0;
	memcpy(&in, data, sizeof(in));
	data += sizeof(in);
	size -= sizeof(in);
	words = size * in.table_share / 256 / 4;
	stack_len = size - words * 4;
	/* Copies of their exact sizes, so that ASan sees both ends. */
	table = malloc(words * 4 + !words);
	stack = malloc(stack_len);
	memcpy(table, data, words * 4);
	memcpy(stack, data + words * 4, stack_len);
	specials = in.how & PLAIN ? 0 : (uint32_t)words / 16;
	if (words)
		table[0] = DWARF_TABLE_MAGIC;
	if (words < DWARF_HEADER_WORDS + 16)
		in.how &= (uint8_t) ~(HEADER | PLAIN);
	if (in.how & PLAIN)
		in.how |= HEADER;
	if (in.how & HEADER)
		right_header(table, (uint32_t)words, specials);
	n.stack = stack;
	n.stack_lo = STACK;
	n.stack_hi = STACK + stack_len;
	n.slab = table;
	n.u.slab_words = words;
	n.u.pc = in.how & IN_STACK ? STACK + in.pc % stack_len : CODE + in.pc;
	n.u.sp = STACK;
	n.u.fp = STACK + in.fp % (stack_len + 16);
	n.u.flags = (in.how & EXACT ? FUSEE_PC_EXACT : 0) | (in.how & FP_LOST ? FUSEE_FP_LOST : 0) |
		    (in.how & FOLLOW ? FUSEE_FOLLOW : 0);
	n.u.valid_regs = in.valid_regs;
	memcpy(n.u.regs, in.regs, sizeof(in.regs));
	/* A register or two of noise lead nowhere: let half of them lead to the stack. */
	for (int i = 0; i < 16; i += 2)
		n.u.regs[i] = STACK + n.u.regs[i] % (stack_len + 16);
	walk(&n, in.how, in.how & HEADER ? table[DWARF_BLOCKS] * 256 : 1);
	free(table);
	free(stack);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "find.h"

#include <string.h>

#include "versions.h"

#define BEGINNING 0x180 /* the most bytes of a prologue */

/* Is it an operand D(%rsp), with its ModRM byte at p? Returns its length; 0: it is not. */
static uint32_t of_sp(const unsigned char *p, uint32_t *disp)
{
	if ((p[0] & 7) != 4 || p[1] != 0x24)
		return 0;
	switch (p[0] >> 6) {
	case 1:
		*disp = p[2];
		return p[2] < 128 ? 3 : 0;
	case 2:
		*disp = fusee_code_u32(p + 2);
		return *disp < PYTHON_MOST_FRAME ? 6 : 0;
	default:
		return 0;
	}
}

/* Is p at the opcode of an instruction that stores into memory? */
static int is_store(const unsigned char *p)
{
	return p[0] == 0x88 || p[0] == 0x89 || p[0] == 0xc6 || p[0] == 0xc7 ||
	       (p[-1] == 0x0f && (p[0] == 0x11 || p[0] == 0x13 || p[0] == 0x17 || p[0] == 0x29 ||
				  p[0] == 0x7f || p[0] == 0xd6));
}

/* The size of the immediate operand of the store at p. */
static uint32_t immediate(const unsigned char *p)
{
	return p[0] == 0xc6 ? 1 : p[0] == 0xc7 ? (p[-1] == 0x66 ? 2 : 4) : 0;
}

/* Is there `mov %reg,disp(%base)` at p, disp < 128? Returns its length; 0: there is not. */
static uint32_t is_store_of(const unsigned char *p, uint32_t *reg, uint32_t disp)
{
	uint32_t sib = (p[2] & 7) == 4;

	if ((p[0] & 0xfa) != 0x48 || p[1] != 0x89 || p[2] >> 6 != 1 || p[3 + sib] != disp ||
	    (sib && p[3] != 0x24))
		return 0;
	*reg = (uint32_t)(p[2] >> 3 & 7) | (uint32_t)(p[0] >> 2 & 1) << 3;
	return 4 + sib;
}

/* Returns the end of the prologue's last instruction that stores into sp + [from, to); 0: none. */
static uint32_t last_store(const unsigned char *code, uint32_t from, uint32_t to)
{
	uint32_t end = 0, disp, n;

	for (uint32_t i = 1; i < BEGINNING; i++) {
		if (!is_store(code + i))
			continue;
		n = of_sp(code + i + 1, &disp);
		if (n && disp >= from && disp < to)
			end = i + 1 + n + immediate(code + i);
	}
	return end;
}

/* 3.11, 3.12: finds the place of this C frame's cframe by `lea K(%rsp),%reg`; `mov
 * %reg,CFRAME(tstate)`. */
static void find_cframe(const unsigned char *code, const uint32_t *words, struct python_places *f)
{
	uint32_t disp, n, field = words[PYTHON_CURRENT];

	for (uint32_t i = 0; i < BEGINNING; i++) {
		uint32_t reg = (uint32_t)(code[i + 2] >> 3 & 7) | (uint32_t)(code[i] >> 2 & 1) << 3;

		if ((code[i] & 0xfb) != 0x48 || code[i + 1] != 0x8d)
			continue;
		n = of_sp(code + i + 2, &disp);
		for (uint32_t k = i + 2 + n; n && k < i + 64; k++) {
			uint32_t stored, len = is_store_of(code + k, &stored, field);

			if (!len || stored != reg)
				continue;
			f->place = disp + (words[PYTHON_FAMILY] == PYTHON_ENTRIES ? 8 : 0);
			f->prologue = last_store(code, disp, disp + 24);
			if (f->prologue < k + len)
				f->prologue = k + len;
			return;
		}
	}
}

/* Is it an operand -D(%rbp), with its ModRM byte at p? Returns its length; 0: it is not. */
static uint32_t below_fp(const unsigned char *p, uint32_t *disp)
{
	if ((p[0] & 7) != 5 || (p[0] >> 6 != 1 && p[0] >> 6 != 2))
		return 0;
	*disp = 0u - (p[0] >> 6 == 1 ? (uint32_t)(int8_t)p[1] : fusee_code_u32(p + 1));
	return *disp > 0 && *disp < PYTHON_MOST_FRAME ? (p[0] >> 6 == 1 ? 2 : 5) : 0;
}

/* From 3.13 on: the place of entry_frame, if there is `lea E(%rsp),%reg` or `lea -E(%rbp),%reg` at
 * p, and then `mov %reg,PREVIOUS(frame)`. 0: there is not. */
static uint32_t entry_at(const unsigned char *p)
{
	uint32_t reg = (uint32_t)(p[2] >> 3 & 7) | (uint32_t)(p[0] >> 2 & 1) << 3;
	uint32_t disp, n, stored, fp = 0;

	if ((p[0] & 0xfb) != 0x48 || p[1] != 0x8d)
		return 0;
	n = of_sp(p + 2, &disp);
	if (!n) {
		n = below_fp(p + 2, &disp);
		fp = PYTHON_BELOW_FP;
	}
	for (uint32_t k = 2 + n; n && k < 24; k++)
		if (is_store_of(p + k, &stored, 8) && stored == reg)
			return disp | fp;
	return 0;
}

/* The place of an operand D(%rsp) or -D(%rbp), with its ModRM byte at p, as PYTHON_PLACE has it. 0:
 * it is no such operand. */
static uint32_t place_of(const unsigned char *p)
{
	uint32_t disp;

	if (of_sp(p, &disp))
		return disp;
	return below_fp(p, &disp) ? disp | PYTHON_BELOW_FP : 0;
}

/* The place of entry_frame, if `mov CURRENT(tstate),%reg` at p and then `mov
 * %reg,PREVIOUS(entry_frame)` fill it in. 0: there are other instructions. */
static uint32_t filled_at(const unsigned char *p, uint32_t current)
{
	uint32_t sib = (p[2] & 7) == 4, place;

	if ((p[0] & 0xfa) != 0x48 || p[1] != 0x8b || p[2] >> 6 != 1 || p[3 + sib] != current)
		return 0;
	for (uint32_t k = 4 + sib; k < 24; k++) {
		if ((p[k] & 0xfb) != 0x48 || p[k + 1] != 0x89 || ((p[k + 2] ^ p[2]) & 0x38) ||
		    ((p[k] ^ p[0]) & 4))
			continue;
		place = place_of(p + k + 2);
		if (place)
			return place & PYTHON_BELOW_FP ? place + 8 : place - 8;
	}
	return 0;
}

/* Does the function take the address of this place? */
static int is_taken(struct fusee_code code, uint32_t place)
{
	for (uint32_t i = 0; i + 16 <= code.n; i++)
		if ((code.at[i] & 0xfb) == 0x48 && code.at[i + 1] == 0x8d &&
		    place_of(code.at + i + 2) == place)
			return 1;
	return 0;
}

uint32_t python_find_entry_before(struct fusee_code code, uint32_t end, const uint32_t *words)
{
	uint32_t place;

	for (uint32_t i = end < code.n ? end : code.n; i-- > 0;) {
		if (i + 40 > code.n)
			continue;
		place = filled_at(code.at + i, words[PYTHON_CURRENT]);
		if (place && is_taken(code, place))
			return place;
	}
	return 0;
}

/* From 3.13 on: finds entry_frame, and the end of the prologue: `mov %reg,CURRENT(tstate)`. */
static void find_entry(const unsigned char *code, const uint32_t *words, struct python_places *f)
{
	uint32_t disp, n;

	for (uint32_t i = 0; i < BEGINNING && !f->place; i++)
		f->place = entry_at(code + i);
	for (uint32_t i = 0; f->place && i < BEGINNING; i++) {
		n = is_store_of(code + i, &disp, words[PYTHON_CURRENT]);
		if (n) {
			f->prologue = i + n;
			return;
		}
	}
	f->place = 0;
}

/* The DWARF numbers of callee-saved registers, by their numbers in instructions. */
static const unsigned char kept[16] = {
	[3] = 3, [5] = 6, [12] = 12, [13] = 13, [14] = 14, [15] = 15};

/* Returns D | PYTHON_IN_STACK if the first `end` bytes have `mov %reg,D(%rsp)`; 0: they
 * have not. */
static uint32_t kept_in_stack(const unsigned char *code, uint32_t end, uint32_t reg)
{
	uint32_t disp;

	for (uint32_t i = 0; i < end; i++)
		if (code[i] == 0x48 && code[i + 1] == 0x89 && (code[i + 2] >> 3 & 7) == reg &&
		    of_sp(code + i + 2, &disp))
			return disp | PYTHON_IN_STACK;
	return 0;
}

/*
 * 3.8 to 3.10: finds the register that the function keeps the frame in. The frame is the first
 * argument in 3.8, and the second later. The prologue ends where the frame is stored in the thread
 * state. If the function also puts the frame on the stack, as clang's code does, the register has
 * other values later, so that the stack's slot is used.
 */
static void find_register(const unsigned char *code, const uint32_t *words, struct python_places *f)
{
	uint32_t argument = words[PYTHON_VERSION] >> 8 == 8 ? 7 : 6; /* rdi, rsi */
	uint32_t reg = 0, stored;

	for (uint32_t i = 0; i < BEGINNING && !reg; i++)
		if ((code[i] & 0xfe) == 0x48 && code[i + 1] == 0x89 && code[i + 2] >> 6 == 3 &&
		    (code[i + 2] >> 3 & 7) == argument)
			reg = (uint32_t)(code[i + 2] & 7) | (uint32_t)(code[i] & 1) << 3;
	for (uint32_t i = 0; kept[reg] && i < BEGINNING; i++) {
		uint32_t n = is_store_of(code + i, &stored, words[PYTHON_CURRENT]);

		if (n && stored == reg) {
			f->prologue = i + n;
			f->place = kept_in_stack(code, f->prologue, argument);
			f->place = f->place ? f->place : kept[reg];
			return;
		}
	}
}

/* Do only jumps and moves between registers follow, from `at` to `end`? */
static int leads_to(struct fusee_code code, uint64_t at, uint32_t end)
{
	for (int i = 0; i < 5 && at + 5 <= code.n; i++) {
		const unsigned char *p = code.at + at;

		if (at == end)
			return 1;
		if (*p == 0xeb)
			at += 2 + (uint64_t)(int8_t)p[1];
		else if (*p == 0xe9)
			at += 5 + (uint64_t)fusee_code_s32(p + 1);
		else if ((*p & 0xfa) == 0x48 && p[1] == 0x89 && p[2] >> 6 == 3)
			at += 3;
		else
			return 0;
	}
	return 0;
}

/* 3.8 to 3.10: finds the function's last calls. Behind them the frame is unlinked. */
static void find_returns(struct fusee_code code, uint32_t end, struct python_places *f)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i + 5 <= code.n && n < PYTHON_RETURNS; i++)
		if (code.at[i] == 0xe8 && leads_to(code, i + 5, end))
			f->unlinked[n++] = i + 5;
}

/* Finds the epilogue of a function that keeps a frame pointer: behind `leave`. */
static void find_leave(struct fusee_code code, struct python_places *f)
{
	if (memcmp(code.at, "\x55\x48\x89\xe5", 4) && memcmp(code.at + 4, "\x55\x48\x89\xe5", 4))
		return;
	for (uint32_t i = 0; i + 2 <= code.n; i++)
		if (code.at[i] == 0xc9 && code.at[i + 1] == 0xc3) {
			f->epilogue = i + 1;
			f->epilogue_end = i + 2;
			return;
		}
}

/* Finds the epilogue, which begins with `add $N,%rsp`, by the `sub $N,%rsp` of the prologue. */
static void find_epilogue(struct fusee_code code, struct python_places *f)
{
	uint32_t size = 0, n;

	for (uint32_t i = 0; i + 7 < 64 && !size; i++)
		if (!memcmp(code.at + i, "\x48\x81\xec", 3))
			size = fusee_code_u32(code.at + i + 3);
	for (uint32_t i = 0; size && i + 7 + 32 < code.n; i++) {
		if (memcmp(code.at + i, "\x48\x81\xc4", 3) ||
		    fusee_code_u32(code.at + i + 3) != size)
			continue;
		for (n = 7; n < 32 && code.at[i + n] != 0xc3; n++)
			;
		if (n == 32)
			continue;
		f->epilogue = i + 7;
		f->epilogue_end = i + n + 1;
		find_returns(code, i, f);
		return;
	}
}

void python_find_places(struct fusee_code code, const uint32_t *words, struct python_places *found)
{
	memset(found, 0, sizeof(*found));
	if (code.n < BEGINNING + 128)
		return;
	switch (words[PYTHON_FAMILY]) {
	case PYTHON_OBJECTS:
		find_register(code.at, words, found);
		break;
	case PYTHON_ENTRIES:
	case PYTHON_SHIMS:
		find_cframe(code.at, words, found);
		break;
	case PYTHON_CHAIN:
		find_entry(code.at, words, found);
		break;
	}
	find_epilogue(code, found);
	if (!found->epilogue)
		find_leave(code, found);
}

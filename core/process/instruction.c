/* SPDX-License-Identifier: Apache-2.0 */
#include "process/instruction.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <fusee/insn.h>

#define MAX_CODE (64ull << 20) /* bytes of a function that are decoded */
#define LONGEST 15u            /* bytes of an instruction */

/* The last instruction must end within the function. */
static int decode_to(const uint8_t *code, uint64_t n, uint64_t plus,
		     struct instruction_begins *around)
{
	struct insn in;
	uint64_t at = 0;

	*around = (struct instruction_begins){0};
	while (at < plus) {
		around->before = at;
		if (fusee_insn_decode(code + at, n - at, &in))
			return -EILSEQ;
		at += in.len;
	}
	if (at == plus)
		return 0;
	around->after = at < n ? at : 0;
	return -EILSEQ;
}

int instruction_begins(struct elf *e, struct fusee_range f, uint64_t plus,
		       struct instruction_begins *around)
{
	uint64_t n = f.hi - f.lo;
	uint8_t *code;
	int r;

	if (f.hi < f.lo || plus >= n)
		return -ERANGE;
	if (plus > MAX_CODE - LONGEST)
		return -E2BIG;
	if (n - plus > LONGEST)
		n = plus + LONGEST; /* an instruction may extend over the offset */
	code = malloc(n);
	if (!code)
		return -ENOMEM;
	r = elf_read(e, f.lo, code, (uint32_t)n);
	if (!r)
		r = decode_to(code, n, plus, around);
	free(code);
	return r;
}

#define FIRST_BYTES 64u

/* push, jmp, call, jcc, and nop of one byte: what all kernels emulate. */
static bool is_emulated(const uint8_t *code, uint32_t len)
{
	uint32_t at = len > 1 && code[0] == 0x41; /* push of r8 to r15 */

	if ((code[at] & 0xf8) == 0x50)
		return true;
	if (code[0] == 0x0f && len > 1)
		return (code[1] & 0xf0) == 0x80;
	return code[0] == 0x90 || code[0] == 0xe8 || code[0] == 0xe9 || code[0] == 0xeb ||
	       (code[0] & 0xf0) == 0x70;
}

uint32_t instruction_emulated(const uint8_t *code, uint32_t n, uint16_t kept)
{
	struct insn in;
	uint32_t at = 0;

	while (at < n && !fusee_insn_decode(code + at, n - at, &in)) {
		if (is_emulated(code + at, in.len))
			return at;
		if (in.effect != INSN_NOTHING || in.written & kept)
			return 0;
		at += in.len;
	}
	return 0;
}

uint32_t instruction_emulated_in(struct elf *e, uint64_t at, uint64_t bytes, bool one)
{
	uint8_t code[FIRST_BYTES];
	uint32_t n = bytes < sizeof(code) ? (uint32_t)bytes : sizeof(code);

	if (elf_read(e, at, code, n))
		return 0;
	return instruction_emulated(code, n, one ? INSTRUCTION_FIRST : INSTRUCTION_THREE);
}

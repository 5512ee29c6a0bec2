/* SPDX-License-Identifier: Apache-2.0 */
#include "process/instruction.h"

#include <errno.h>
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

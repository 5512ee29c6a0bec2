/* SPDX-License-Identifier: Apache-2.0 */
/* Both native steps over a table, registers and a stack of noise: they end, inside their memory,
 * and a stop has a reason that they name. sources: plugins/unwinders/dwarf/dwarf.bpf.c
 * plugins/unwinders/framepointer/framepointer.bpf.c libs:
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <fusee/unwinder.bpf.h>

#include "../../plugins/unwinders/dwarf/reasons.h"
#include "../../plugins/unwinders/dwarf/table.h"

int fusee_step_dwarf(struct fusee_unwind *u);
int fusee_step_framepointer(struct fusee_unwind *u);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STACK 0x7f0000000000ull

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t words = size / 8, stack_bytes;
	struct fusee_native n = {0};
	uint32_t *table;

	if (size < 64)
		return 0;
	/* The first half is the table (its magic given), the second the stack: exact copies, so
	 * that ASan sees the ends. */
	table = malloc(words * 4 + 4);
	memcpy(table, data, words * 4);
	if (words)
		table[0] = DWARF_TABLE_MAGIC;
	stack_bytes = size - words * 4;
	n.stack = data + words * 4;
	n.stack_lo = STACK;
	n.stack_hi = STACK + stack_bytes;
	n.slab = table;
	n.u.slab_words = words;
	memcpy(&n.u.pc, data + size - 8, 8);
	n.u.sp = STACK;
	n.u.fp = STACK + (n.u.pc & 0xff8) % stack_bytes;
	n.u.flags = FUSEE_PC_EXACT;
	n.u.valid_regs = data[0] | (uint64_t)data[1] << 8;
	for (int i = 0; i < 2000; i++) {
		int r;

		n.u.offset = n.u.pc;
		r = i % 3 == 2 ? fusee_step_framepointer(&n.u) : fusee_step_dwarf(&n.u);
		if (r == FUSEE_PASS)
			r = fusee_step_framepointer(&n.u);
		if (n.u.error >= DWARF_REASONS)
			abort();
		if (r != FUSEE_NEXT)
			break;
	}
	free(table);
	return 0;
}

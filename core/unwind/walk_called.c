/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/internal/walk_called.h"

#include "../../bpf/called.h"

/* Is there certainly no code at pc? Of a process that runs only the first page is known. */
static bool has_no_code(struct fusee_native *n)
{
	const struct sample_memory *memory = ((struct walk_context *)n->arg)->memory;
	unsigned char code;

	if (n->u.pc < NULL_PAGE)
		return true;
	return memory && !(n->u.flags & FUSEE_FIRST) &&
	       memory->read(memory->arg, &code, 1, n->u.pc);
}

bool walk_called(struct fusee_native *n)
{
	bool called = n->u.flags & FUSEE_PC_EXACT && has_no_code(n) &&
		      step_out_of_call(&n->u) == FUSEE_NEXT;

	((struct walk_context *)n->arg)->beyond = false;
	return called;
}

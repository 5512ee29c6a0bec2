/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/internal/walk_returns.h"

#include "../../bpf/probed.h"

#define PAGE 4096u

static bool is_uprobe_page(const struct walk_context *c, uint64_t pc, uint64_t time)
{
	const struct process_mapping *m;

	if (c->returns.page && pc - c->returns.page < PAGE)
		return true;
	m = process_mapping_at(c->process, pc, time);
	return m && m->uprobes;
}

/* A return address is the first of the page, and the code that is looked up lies before it. */
bool walk_in_uprobe_page(struct fusee_native *n, const struct process_mapping *m)
{
	if (m && !m->file && is_in_probe(&n->u))
		return true;
	return (!m || m->uprobes || !(n->u.pc % PAGE)) &&
	       is_uprobe_page(n->arg, n->u.pc, n->u.time_ns);
}

/* Begins behind what it has found last, since callers were called before, and looks at the others
 * if what it looks for is not there: a stack that was switched. */
bool walk_original_return(struct fusee_native *n)
{
	struct walk_context *c = n->arg;
	const struct sample_returns *r = &c->returns;

	if (!leave_probe(&n->u))
		return true;
	if (n->u.pc % PAGE || n->u.flags & (FUSEE_PC_EXACT | FUSEE_FIRST))
		return false;
	for (uint32_t i = 0; i < r->n; i++) {
		uint32_t at = (c->next_return + i) % r->n;

		if (r->at[at].at != n->u.sp - 8)
			continue;
		c->next_return = at + 1;
		n->u.pc = r->at[at].pc;
		return !is_uprobe_page(c, n->u.pc, n->u.time_ns);
	}
	return false;
}

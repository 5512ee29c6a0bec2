/* SPDX-License-Identifier: Apache-2.0 */
/* A mapping of a process: is it known, and what does it cover? */
#include <errno.h>

#include "base/clock.h"
#include "pipeline/budget.h"
#include "pipeline/state.h"

#define RETRY_NS 200000000ull

/* Does the new mapping put other code where there was some? Text that was moved there was taken for
 * memory until it was compared. *file: whose code that was; 0: that of
 * several files, of none, or of an interpreter, whose frames are not among those of a stack. */
static bool covers_other(const struct process *proc, const struct process_mapping *to,
			 uint32_t *file)
{
	bool covers = false;

	for (uint32_t i = process_first_above(proc, to->lo);
	     i < proc->n && proc->mappings[i].lo < to->hi; i++) {
		const struct process_mapping *m = &proc->mappings[i];
		uint32_t id = m->file && !m->file->claimed ? m->file->id : 0;

		/* The kernel has no table of a file that could not be opened. */
		if (m->file && m->file->state == FILE_REFUSED && m->lo == to->lo &&
		    m->offset == to->offset && m->hi == to->hi)
			continue;
		if ((!m->file && (!to->file || to->moved)) ||
		    (m->file == to->file && m->lo - m->offset == to->lo - to->offset))
			continue;
		*file = covers && *file != id ? 0 : id;
		covers = true;
	}
	return covers;
}

/* The same mapping, if it is known already. Of memory without a file a part of a known mapping is
 * enough. */
static struct process_mapping *has_same(struct process *proc, const struct process_mapping *to)
{
	struct process_mapping *m = process_mapping(proc, to->lo);

	if (!m || m->file != to->file || m->uprobes != to->uprobes || m->lo > to->lo ||
	    m->hi < to->hi)
		return NULL;
	return !to->file || (m->lo == to->lo && m->hi == to->hi && m->offset == to->offset) ? m
											    : NULL;
}

/* What fails once in a while begins with a short pause each time. */
void pipeline_begin_pause(struct growing_pause *pause, uint64_t most_ns)
{
	uint64_t now = clock_now();

	if (!pause->ns || now > pause->until_ns + 2 * pause->ns + PIPELINE_PAUSE_NS)
		pause->ns = RETRY_NS;
	else if (pause->ns < most_ns)
		pause->ns *= 2;
	pause->until_ns = now + pause->ns;
}

void pipeline_put_mapping(struct pipeline *p, struct process *proc,
			  const struct process_mapping *to)
{
	struct process_mapping *same = has_same(proc, to);
	uint32_t covered = 0;
	int r;

	if (same) {
		if ((to->text.file || to->text.differed) && !same->moved)
			same->text = to->text;
		return;
	}
	if (covers_other(proc, to, &covered))
		kernel_view_covered(&p->views, proc, to, covered);
	kernel_view_mark_dirty(&p->views, proc);
	r = process_map(proc, to);
	if (r == -E2BIG)
		budget_pause(p, proc, to->since);
	else if (r)
		p->rescan.due = true;
	else
		budget_check_mappings(p, to->since);
}

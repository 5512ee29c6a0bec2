/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Several frames at one call of a language's step: fusee_go_on(). What the core does for a frame
 * takes as long as the step itself, so it is omitted where nothing of it can be needed. */
#ifndef BPF_GO_ON_H
#define BPF_GO_ON_H

#include <fusee/unwinder.bpf.h>

#include "walk.h"

/* The mapping of the callee, if the caller is in it, too, and sampler_step() would prepare the step
 * as it did for the callee. NULL: not so. */
FUSEE_FN struct chunk_mapping *same_claim(const struct fusee_unwind *u, const struct scratch *s)
{
	struct chunk_mapping *m = found_mapping(u, s, u->pc - 1);

	if (!m || m->registers || m->unwinder - 1 != s->slot || READ_ONCE(m->changed) > s->as_of)
		return 0;
	return u->pc & (UPROBE_PAGE - 1) ? m : 0;
}

/* For the steps: fusee_go_on(). */
__attribute__((noinline)) int fusee_core_go_on(int how)
{
	struct fusee_unwind *u = fusee_current();
	struct scratch *s = scratch();
	struct chunk_mapping *m;

	__asm__ volatile("" : "+r"(how));
	if (!u || !s || !u->npushed || u->absent || u->flags & FUSEE_OMIT_CALLEE ||
	    !has_inner_room(s))
		return 0;
	if (how == FUSEE_AGAIN) {
		append_inner(u, s);
		return 1;
	}
	if (how != FUSEE_NEXT || u->push_flags & FUSEE_PUSH_THREAD || u->sp <= s->claimed.sp)
		return 0;
	m = same_claim(u, s);
	if (!m)
		return 0;
	append_inner(u, s);
	s->claimed.pushed = 0;
	language_called_by(u, s);
	s->search.before = s->at;
	s->next.exact = 0;
	s->claimed.at = u->pc - 1;
	u->offset = u->pc - m->bias;
	language_prepare(u, s, m);
	return 1;
}
#endif

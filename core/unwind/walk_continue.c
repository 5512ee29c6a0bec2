/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/internal/walk_continue.h"

#include "loss/loss.h"

static void append(const struct sample_continuation *c, bool guessed, struct walk *out)
{
	for (uint32_t i = 0; i < c->n; i++) {
		struct walk_frame f = c->frames[i];

		if (!i && guessed && f.kind <= FRAME_ANONYMOUS)
			f.guessed = 1;
		if (!walk_put(out, &f)) {
			out->reason = loss_text(LOSS_TOO_DEEP);
			walk_drop_outer(out);
			return;
		}
		out->guessed += f.guessed;
	}
	out->continued = true;
}

bool walk_continue(const struct fusee_native *n, bool guessed, struct walk *out)
{
	const struct sample_continuations *all = ((struct walk_context *)n->arg)->continuations;

	if (out->passed || n->u.flags & FUSEE_PC_EXACT)
		return false;
	for (uint32_t i = 0; i < all->n; i++)
		if (all->at[i].pc == n->u.pc && all->at[i].sp == n->u.sp) {
			append(&all->at[i], guessed, out);
			return true;
		}
	return false;
}

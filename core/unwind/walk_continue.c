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

/* Does it begin at this frame? That of a part may be the interrupted frame. */
static bool begins_at(const struct sample_continuation *c, const struct fusee_unwind *u,
		      const struct walk_context *walk)
{
	return c->pc == u->pc && c->sp == u->sp && c->after == walk->joined &&
	       (!(u->flags & FUSEE_PC_EXACT) || (!walk->stepped && c->end_sp));
}

/* A part is passed frame by frame, because registers are restored in each: these frames are removed
 * again, which is not possible among the outer frames of a deep stack. */
static bool has_room(const struct sample_continuation *c, const struct walk *out)
{
	return !c->end_sp || out->n + c->n < WALK_INNER_FRAMES;
}

/* The continuation that begins at this frame. NULL: none. */
static const struct sample_continuation *
find(const struct fusee_unwind *u, const struct walk_context *walk, const struct walk *out)
{
	const struct sample_continuations *all = walk->continuations;

	for (uint32_t i = 0; i < all->n && !out->passed; i++)
		if (begins_at(&all->at[i], u, walk) && has_room(&all->at[i], out))
			return &all->at[i];
	return NULL;
}

/* A continuation has ended. If it shows a function since the last code that was made at run time,
 * the step of such code may omit that in its favour, as in the kernel: by `stored`. */
static void note_shown(struct fusee_unwind *u, const struct sample_continuation *c)
{
	uint32_t i = c->n;

	while (i && c->frames[i - 1].kind != FRAME_ANONYMOUS)
		if (c->frames[--i].kind == FRAME_PUSHED) {
			u->stored++;
			return;
		}
}

bool walk_continue(struct fusee_native *n, bool guessed, struct walk *out)
{
	struct walk_context *walk = n->arg;
	const struct sample_continuation *c = walk->inside;

	if (!c || (c->end_pc == n->u.pc && c->end_sp == n->u.sp)) {
		if (c) {
			walk->joined = c->number;
			note_shown(&n->u, c);
		}
		c = find(&n->u, walk, out);
		walk->inside = c && c->end_sp ? c : NULL;
		if (c)
			append(c, guessed, out);
	}
	walk->before.n = out->n;
	walk->before.guessed = out->guessed;
	return c && !c->end_sp;
}

void walk_skip(const struct fusee_native *n, bool over, struct walk *out)
{
	const struct walk_context *walk = n->arg;

	if (!walk->inside)
		return;
	out->n = walk->before.n;
	out->guessed = walk->before.guessed;
	out->passed = over; /* what follows its end is missing */
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/internal/walk_frames.h"

#include <string.h>

void walk_clear(struct walk *w, uint32_t most)
{
	w->n = w->outer = w->guessed = 0;
	w->most = most > WALK_INNER_FRAMES ? most - WALK_INNER_FRAMES : 0;
	w->passed = w->continued = false;
	w->reason = NULL;
}

bool walk_put(struct walk *w, const struct walk_frame *f)
{
	if (w->n < WALK_INNER_FRAMES) {
		w->frames[w->n++] = *f;
		return true;
	}
	if (w->outer >= w->most)
		return false;
	w->frames[WALK_INNER_FRAMES + w->outer++ % WALK_OUTER_FRAMES] = *f;
	return true;
}

void walk_omit_machine(struct walk *w)
{
	if (!w->outer && w->n && w->frames[w->n - 1].kind <= FRAME_ANONYMOUS)
		w->guessed -= w->frames[--w->n].guessed;
}

struct walk_frame walk_omitted(uint64_t n)
{
	return (struct walk_frame){.kind = FRAME_OMITTED,
				   .addr = 1ull << (63 - __builtin_clzll(n))};
}

void walk_reverse(struct walk_frame *f, uint32_t n)
{
	for (uint32_t i = 0; i < n / 2; i++) {
		struct walk_frame other = f[i];

		f[i] = f[n - 1 - i];
		f[n - 1 - i] = other;
	}
}

void walk_close(struct walk *w)
{
	struct walk_frame *ring = w->frames + WALK_INNER_FRAMES;
	uint32_t kept = w->outer < WALK_OUTER_FRAMES ? w->outer : WALK_OUTER_FRAMES;
	uint32_t first = w->outer % WALK_OUTER_FRAMES, omitted = w->outer - kept;

	w->n += kept;
	w->outer = 0;
	if (!omitted)
		return;
	/* turns the ring so that it begins with the frame that was put first */
	walk_reverse(ring, first);
	walk_reverse(ring + first, kept - first);
	walk_reverse(ring, kept);
	memmove(ring + 1, ring, kept * sizeof(*ring));
	*ring = walk_omitted(omitted);
	w->n++;
}

void walk_drop_outer(struct walk *w)
{
	w->outer = 0;
}

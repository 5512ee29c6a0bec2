/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/internal/walk_learn.h"

#include "process/seen_frames.h"
#include "unwind/internal/walk_guess.h"

#define ROOM 2048u  /* bytes of such a frame that are looked at */
#define WORK 8192u  /* words and steps of one sample .. */
#define SEARCH 128u /* .. and of these, for which a file is read: some 0.1 ms */

struct search {
	struct seen_frames *seen;
	struct walk_guesses *out;
	const struct learn_ops *ops;
	uint64_t time;
	uint32_t work;
};

static uint64_t key_of(const struct fusee_unwind *u)
{
	return u->pc << 1 | !(u->flags & FUSEE_PC_EXACT);
}

/* pc: 0, or in the function that the frame has called. */
static bool may_lead(struct search *s, struct fusee_native *n, uint64_t pc)
{
	bool searched, may = s->ops->may_lead(s->ops->arg, n, pc, &searched);

	if (searched)
		s->work = s->work > SEARCH ? s->work - SEARCH : 1;
	return may;
}

static bool resolve(struct search *s, struct fusee_native *n);

/* Is the stack proved from this frame to the outermost, but for frames that were learned? */
static bool reaches_end(struct search *s, struct fusee_native *n)
{
	for (;;) {
		const struct fusee_unwind before = n->u;
		uint64_t map_lo;

		if (s->work < 2)
			return false;
		s->work--;
		switch (s->ops->step(s->ops->arg, n)) {
		case LEARN_NEXT:
			if (n->u.sp <= before.sp ||
			    (!(n->u.flags & FUSEE_PC_EXACT) &&
			     !may_lead(s, n, before.pc - !(before.flags & FUSEE_PC_EXACT))))
				return false;
			n->u.flags &= ~(uint32_t)(FUSEE_SIGNAL | FUSEE_FIRST | FUSEE_INEXPRESSIBLE);
			break;
		case LEARN_END:
			return true;
		case LEARN_UNKNOWN:
			map_lo = n->u.map_lo;
			n->u = before;
			n->u.map_lo = map_lo;
			return resolve(s, n);
		case LEARN_FAILS:
			return false;
		}
	}
}

static void go_to(struct fusee_unwind *u, uint64_t pc, uint64_t sp)
{
	u->pc = pc;
	u->sp = sp;
	u->valid_regs = 0;
	u->flags &= ~(uint32_t)(FUSEE_PC_EXACT | FUSEE_FIRST | FUSEE_SIGNAL);
	u->flags |= FUSEE_FP_LOST;
}

/* Does the word at sp + offset look like this frame's return address? Then the step is in
 * s->out. */
static bool leads(struct search *s, struct fusee_native *n, uint64_t offset)
{
	const struct fusee_unwind before = n->u;
	uint32_t guesses = s->out->n;
	uint64_t word, sp = before.sp + offset + 8;
	bool good;

	s->work--;
	/* a caller has aligned sp for the call */
	if (sp & 15 || guesses == WALK_MOST_GUESSES || fusee_read(&n->u, &word, 8, sp - 8) ||
	    !walk_is_behind_call(n, word))
		return false;
	s->out->at[s->out->n++] = (struct walk_guess){before.pc, before.sp, word, sp};
	go_to(&n->u, word, sp);
	good = may_lead(s, n, 0) && reaches_end(s, n);
	n->u = before;
	if (!good)
		s->out->n = guesses;
	return good;
}

/* All offsets that this sample's stack allows for the frame. */
static struct seen_sample look(struct search *s, struct fusee_native *n)
{
	struct seen_sample shown = {.process = n->u.process,
				    .pc = key_of(&n->u),
				    .map_lo = n->u.map_lo,
				    .time = s->time};
	uint32_t guesses = s->out->n;
	uint64_t end = n->stack_hi - n->u.sp;

	for (uint16_t at = 0; at < ROOM && at + 8u <= end && shown.n < SEEN_OFFSETS && s->work > 1;
	     at += 8)
		if (leads(s, n, at)) {
			shown.offsets[shown.n++] = at;
			s->out->n = guesses;
		}
	return shown;
}

/* Learns from this sample. false: the frame's step is not known. */
static bool learn(struct search *s, struct fusee_native *n, uint16_t *offset)
{
	struct seen_sample shown = look(s, n);
	uint64_t word;

	if (!shown.n)
		return false;
	*offset = seen_frames_add(s->seen, &shown);
	return !fusee_read(&n->u, &word, 8, n->u.sp + *offset) &&
	       seen_frames_confirm(s->seen, &shown, *offset, word);
}

/* Is the caller such a frame too, whose step is known, or trusted? */
static bool is_plausible(struct search *s, const struct fusee_native *n, uint32_t guess)
{
	const struct walk_guesses *g = s->out;
	uint64_t caller = g->at[guess].caller_pc;

	return (g->n > guess + 1 && g->at[guess + 1].pc == caller) ||
	       seen_frames_trusted(s->seen, n->u.process, n->u.map_lo, caller);
}

/* The frame's step, and those of further such frames. */
static bool resolve(struct search *s, struct fusee_native *n)
{
	uint32_t guess = s->out->n;
	uint64_t process = n->u.process, pc = key_of(&n->u);
	uint16_t offset;
	bool settled;

	if (n->u.sp < n->stack_lo || n->u.sp >= n->stack_hi)
		return false;
	settled = seen_frames_settled(s->seen, process, pc, &offset);
	if (!settled && !learn(s, n, &offset))
		return false;
	if (leads(s, n, offset) && is_plausible(s, n, guess))
		return true;
	s->out->n = guess;
	if (settled)
		seen_frames_forget(s->seen, process, pc);
	return false;
}

bool walk_learn(struct seen_frames **seen, struct fusee_native *n, uint64_t time,
		const struct learn_ops *ops, struct walk_guesses *out)
{
	const struct fusee_unwind before = n->u;
	struct search s = {.out = out, .ops = ops, .time = time, .work = WORK};
	bool good;

	out->n = 0;
	if (!*seen)
		*seen = seen_frames_new();
	s.seen = *seen;
	good = s.seen && resolve(&s, n);
	n->u = before;
	if (!good)
		out->n = 0;
	return good;
}

bool walk_apply_guess(struct fusee_native *n, const struct walk_guesses *g)
{
	for (uint32_t i = 0; g && i < g->n; i++)
		if (g->at[i].pc == n->u.pc && g->at[i].sp == n->u.sp) {
			go_to(&n->u, g->at[i].caller_pc, g->at[i].caller_sp);
			n->u.flags |= FUSEE_GUESSED;
			return true;
		}
	return false;
}

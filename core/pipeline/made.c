/* SPDX-License-Identifier: Apache-2.0 */
/* Samples whose stacks pass through code made at run time. A stack is right if the code was still
 * the same after the sample, so the sample waits until the code was read again. */
#include <string.h>

#include "pipeline/state.h"

/* Whether an unwinder that claims this code steps it. Some cannot over stack copies, which are all
 * that there is without the BPF sampler. */
static bool is_stepped(struct pipeline *p, struct process *over, const struct process_mapping *m,
		       uint64_t addr, uint64_t time)
{
	uint32_t generation;
	const struct claim *c = claims_at(p->claims, over, m, addr, time, &generation);

	return c && c->flags & FUSEE_CLAIM_STEP && (p->o.bpf || !(c->flags & FUSEE_CLAIM_LIVE));
}

static enum made_verdict verdict(const struct pipeline *p, uint64_t over, uint64_t time, uint32_t i,
				 bool late)
{
	const struct walk *w = &p->walk;
	const struct made_frame f = {.process = over,
				     .addr = w->frames[i].addr,
				     .time = time,
				     .guessed = i + 1 < w->n && w->frames[i + 1].guessed};

	return made_code_verdict(p->made, &f, late);
}

static bool may_have_table(const struct pipeline *p, uint64_t over, uint64_t time, uint32_t i)
{
	enum made_verdict v = verdict(p, over, time, i, false);

	return v != MADE_NONE && v != MADE_OTHER;
}

/* Reports the frames that may be in such code, and sets `extra` of frames that a table may have
 * stepped, until settle(). true: the sample must wait. */
static bool note_frames(struct pipeline *p, struct process *over, uint64_t time)
{
	bool waits = false, exact;

	for (uint32_t i = 0; i < p->walk.n; i++) {
		struct walk_frame *f = &p->walk.frames[i];
		const struct process_mapping *m;

		if (f->kind != FRAME_ANONYMOUS)
			continue;
		exact = f->extra[1];
		m = process_mapping_at(over, f->addr, time);
		if (m && !m->file && !m->until && !is_stepped(p, over, m, f->addr, time)) {
			made_code_note(p->made, over, m, f->addr, exact, time);
			f->extra[0] = may_have_table(p, over->id, time, i);
			waits |= f->extra[0];
		}
	}
	return waits;
}

/* Removes the frames from n on, for that reason. */
static void truncate_at(struct walk *w, uint32_t n, enum loss_reason why)
{
	for (uint32_t i = n; i < w->n; i++) {
		w->guessed -= w->frames[i].guessed;
		w->frames[i].extra[0] = 0;
	}
	w->n = n;
	w->reason = loss_text(why);
}

/* Marks the caller at i as guessed. */
static void guess(struct walk *w, uint32_t i)
{
	if (i >= w->n || w->frames[i].guessed)
		return;
	w->frames[i].guessed = 1;
	w->guessed++;
}

/* Omitted frames may have been in code that has changed, so the frame after them is guessed. */
static void guess_behind_omitted(struct walk *w)
{
	for (uint32_t i = 0; i < w->n; i++)
		if (w->frames[i].kind == FRAME_OMITTED)
			guess(w, i + 1);
}

/* Truncates the stack at the first frame whose code has changed, or that was stepped otherwise than
 * by the table that came later. false: not known yet. */
static bool settle(struct pipeline *p, uint64_t over, uint64_t time, bool late)
{
	struct walk *w = &p->walk;

	for (uint32_t i = 0; i < w->n; i++) {
		if (w->frames[i].kind != FRAME_ANONYMOUS || !w->frames[i].extra[0])
			continue;
		w->frames[i].extra[0] = 0;
		switch (verdict(p, over, time, i, late)) {
		case MADE_LATER:
			return false;
		case MADE_NONE:
		case MADE_CHANGED: /* its caller is unknown */
			truncate_at(w, i + 1, LOSS_MADE_CHANGED);
			return true;
		case MADE_REFUTED:
			truncate_at(w, i + 1, LOSS_NO_TABLE_YET);
			return true;
		case MADE_UNSURE:
			guess(w, i + 1);
			break;
		case MADE_OTHER:
		case MADE_SAME:
			break;
		}
	}
	guess_behind_omitted(w);
	return true;
}

void pipeline_deliver(struct pipeline *p, struct process *proc, const struct sample *s,
		      const struct pipeline_route *route, const char *comm, struct process *over)
{
	const struct waiting_walk walk = {.frames = p->walk.frames,
					  .n = p->walk.n,
					  .guessed = p->walk.guessed,
					  .reason = p->walk.reason,
					  .passed = p->walk.passed,
					  .continued = p->walk.continued,
					  .over = over->id};
	struct sample without = *s;

	if (!p->made || !note_frames(p, over, s->time)) {
		if (made_code_follows(p->made, over->id))
			guess_behind_omitted(&p->walk);
		pipeline_add(p, proc, s, route, comm);
		return;
	}
	without.stack_len = without.nkernel = without.continuations.n = 0;
	if (waiting_add(&p->waiting, proc, &followed_of(proc)->waiting_bytes, &without, route, comm,
			&walk))
		return;
	settle(p, over->id, s->time, true);
	pipeline_add(p, proc, s, route, comm);
}

bool pipeline_retry_made(struct pipeline *p, struct waiting *w, bool late)
{
	const struct waiting_walk *from = &w->walk;
	struct walk *to = &p->walk;

	memcpy(to->frames, from->frames, from->n * sizeof(to->frames[0]));
	to->n = from->n;
	to->guessed = from->guessed;
	to->reason = from->reason;
	to->passed = from->passed;
	to->continued = from->continued;
	to->waiting = NULL;
	if (!settle(p, from->over, w->sample.time, late))
		return false;
	pipeline_add(p, w->process, &w->sample, &w->route, w->comm);
	followed_of(w->process)->waiting_bytes -= w->bytes;
	return true;
}

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Appends frames to the record of a stack: inner frames, and the outer frames of a deep stack. */
#ifndef BPF_STACK_H
#define BPF_STACK_H

#include <fusee/unwinder.bpf.h>

#include "sample.h"

/* ---- outer frames ---- */

/* The next frame is an outer frame. */
FUSEE_FN void outer_begin(struct scratch *s)
{
	struct record_outer *o = &s->deep.outer;

	if (!o->frames) {
		o->inner = s->at;
		s->at = RECORD_OUTER_AT;
	}
	o->frames++;
}

FUSEE_FN void outer_word(struct scratch *s, __u64 word)
{
	__u32 i = s->deep.outer.words;

	s->deep.outer.words = i + 1;
	__asm__ volatile("" : "+r"(i)); /* else Linux 5.10 does not see its bound */
	s->record.stack.words[RECORD_OUTER_AT + (i & (RECORD_OUTER_WORDS - 1))] = word;
}

/* Appends an outer frame of one word. A global function, as in walk.h: it is rare. */
__attribute__((noinline)) int sampler_outer(__u64 word)
{
	struct scratch *s = scratch();

	__asm__ volatile("" : "+r"(word));
	if (!s)
		return STEP_STOPPED;
	outer_begin(s);
	outer_word(s, word);
	return STEP_AGAIN;
}

/* The stack is to be sent: completes its record. */
FUSEE_FN void outer_end(struct scratch *s)
{
	struct record_outer *o = &s->deep.outer;

	if (!o->frames)
		return;
	__builtin_memcpy(&s->record.stack.words[RECORD_INNER_WORDS], o, sizeof(*o));
	s->at = RECORD_OUTER_AT + (o->words < RECORD_OUTER_WORDS ? o->words : RECORD_OUTER_WORDS);
	s->record.tick.head.flags |= RECORD_OUTER;
}

/* The outermost frame was not reached: these are just frames from the middle. */
FUSEE_FN void outer_drop(struct scratch *s)
{
	if (s->deep.outer.frames)
		s->at = s->deep.outer.inner;
	s->deep.outer.frames = 0;
}

/* ---- frames ---- */

/* Appends the frame at this address to the record. STEP_AGAIN or STEP_UNKNOWN_CODE. */
FUSEE_FN int push(struct scratch *s, const struct chunk_mapping *m, __u64 at)
{
	__u64 word, offset = at - m->shift;

	if (m->file) {
		if (offset > FRAME_MAX_OFFSET)
			return STEP_UNKNOWN_CODE;
		word = (__u64)m->file << FRAME_FILE_SHIFT | offset;
	} else {
		word = (__u64)FRAME_ANONYMOUS << FRAME_KIND_SHIFT | (at & FRAME_ANONYMOUS_MAX) |
		       (m->unwinder ? FRAME_CLAIMED : 0) | (s->next.exact ? FRAME_EXACT : 0);
	}
	word |= s->next.guessed ? FRAME_GUESSED : 0;
	if (s->at >= RECORD_INNER_WORDS)
		return sampler_outer(word);
	s->record.stack.words[s->at] = word;
	s->at++;
	s->claimed.machine = s->at;
	return STEP_AGAIN;
}

/* The step that was called says that the frame before its own is not shown. */
FUSEE_FN void omit_callee(struct fusee_unwind *u, struct scratch *s)
{
	u->flags &= ~(__u32)FUSEE_OMIT_CALLEE;
	if (s->claimed.machine && s->claimed.machine == s->at)
		s->at--;
	s->claimed.machine = 0;
}

/* The first word of the frame that the step pushed. */
FUSEE_FN __u64 pushed_word(const struct fusee_unwind *u, const struct scratch *s)
{
	return (__u64)FRAME_PUSHED << FRAME_KIND_SHIFT |
	       (u->pushed_words > 2 ? FRAME_FOUR_WORDS : 0) |
	       (__u64)(u->push_flags & 0xff) << FRAME_FLAGS_SHIFT | s->slot;
}

/* Is the frame that the step pushed in the record already, at this index? */
FUSEE_FN int is_equal_to(struct fusee_unwind *u, struct scratch *s, __u32 index)
{
	const __u64 *words = s->record.stack.words;
	__u32 end = s->deep.outer.frames ? s->deep.outer.inner : s->at;
	__u64 i = index;

	if (index >= end)
		return 0;
	__asm__ volatile("" : "+r"(i)); /* Linux 5.10 needs a check of 64 bits, right before */
	if (i > RECORD_INNER_WORDS - FRAME_MOST_WORDS)
		return 0;
	if (words[i] != pushed_word(u, s) || words[i + 1] != u->pushed[0] ||
	    words[i + 2] != u->pushed[1])
		return 0;
	return u->pushed_words <= 2 ||
	       (words[i + 3] == u->pushed[2] && words[i + 4] == u->pushed[3]);
}

FUSEE_FN __u64 again_word(__u32 equal)
{
	return (__u64)FRAME_PUSHED << FRAME_KIND_SHIFT | FRAME_AGAIN | equal;
}

/* Appends the frame that the step pushed as an outer frame. */
__attribute__((noinline)) int sampler_outer_pushed(__u32 equal)
{
	struct fusee_unwind *u = fusee_current();
	struct scratch *s = scratch();

	__asm__ volatile("" : "+r"(equal));
	if (!u || !s)
		return STEP_STOPPED;
	outer_begin(s);
	if (is_equal_to(u, s, equal)) {
		outer_word(s, again_word(equal));
		return STEP_AGAIN;
	}
	if (u->pushed_words > 2) {
		outer_word(s, u->pushed[3]);
		outer_word(s, u->pushed[2]);
	}
	outer_word(s, u->pushed[1]);
	outer_word(s, u->pushed[0]);
	outer_word(s, pushed_word(u, s));
	return STEP_AGAIN;
}

/* Is there room for one more inner frame that a step pushes? */
FUSEE_FN int has_inner_room(const struct scratch *s)
{
	return s->at <= RECORD_INNER_WORDS - FRAME_MOST_WORDS;
}

FUSEE_FN __u32 equal_place(const struct fusee_unwind *u)
{
	__u64 place = u->pushed[0] ^ u->pushed[1];

	__asm__ volatile("" : "+r"(place)); /* Linux 5.10 forgets bounds of spilled values */
	return place & (SCRATCH_EQUAL - 1);
}

/* The frame that the step pushed is about to be appended. */
FUSEE_FN void take_pushed(struct fusee_unwind *u, struct scratch *s)
{
	u->npushed = 0;
	u->stored++;
	if (!(u->push_flags & FUSEE_PUSH_THREAD))
		s->claimed.pushed = 1;
	s->idle = 0;
}

/* Appends the frame that the step pushed as an inner frame, for which there is room. */
FUSEE_FN void append_inner(struct fusee_unwind *u, struct scratch *s)
{
	int is_equal = is_equal_to(u, s, s->equal[equal_place(u)]);
	__u64 at = s->at;

	take_pushed(u, s);
	__asm__ volatile("" : "+r"(at)); /* a check of its own, which Linux 5.10 understands */
	if (at > RECORD_INNER_WORDS - FRAME_MOST_WORDS)
		return;
	if (is_equal) {
		s->record.stack.words[at] = again_word(s->equal[equal_place(u)]);
		s->at = at + 1;
		return;
	}
	s->record.stack.words[at] = pushed_word(u, s);
	s->record.stack.words[at + 1] = u->pushed[0];
	s->record.stack.words[at + 2] = u->pushed[1];
	s->at = at + FRAME_PUSHED_WORDS;
	if (u->pushed_words > 2) {
		s->record.stack.words[at + 3] = u->pushed[2];
		s->record.stack.words[at + 4] = u->pushed[3];
		s->at = at + FRAME_MOST_WORDS;
	}
	s->equal[equal_place(u)] = at;
}

/* Appends the frame that the step pushed, which replaces the machine's. STEP_AGAIN. */
FUSEE_FN int append_pushed(struct fusee_unwind *u, struct scratch *s)
{
	if (has_inner_room(s)) {
		append_inner(u, s);
		return STEP_AGAIN;
	}
	take_pushed(u, s);
	return sampler_outer_pushed(s->equal[equal_place(u)]);
}

/* Appends the machine's frame, unless the step has pushed frames in its place. As push(). */
FUSEE_FN int append_unpushed(struct scratch *s, const struct chunk_mapping *m, __u64 at)
{
	int r = s->claimed.pushed ? STEP_AGAIN : push(s, m, at);

	s->claimed.pushed = 0;
	return r;
}
#endif

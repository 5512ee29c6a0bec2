/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code made at run time whose frame nothing proves: its way out is a jump to an interpreter, on
 * whose frame it runs. What the stacks of samples show is a guess: in each sample of a place one
 * word, at one distance from sp, lies right behind a call, and the frames from there on are proved
 * up to the outermost. Of several such words, which the callers' are too, it is the innermost.
 */
#ifndef UNWIND_WALK_LEARN_H
#define UNWIND_WALK_LEARN_H

#include <fusee/unwinder.bpf.h>

#include "unwind/walk_language.h"

enum learn_step {
	LEARN_NEXT,    /* u is the caller's */
	LEARN_END,     /* the outermost frame */
	LEARN_UNKNOWN, /* code made at run time that no row and no claim steps */
	LEARN_FAILS,
};

/* Steps a frame by what is proved. */
typedef enum learn_step learn_step(void *arg, struct fusee_native *);

struct learn_ops {
	learn_step *step;
	/* u is at a caller. Can its call have led to the frame before, of this pc? Or, 0, to code
	 * that was made at run time? *searched: whether the file was read for the answer. */
	bool (*may_lead)(void *arg, struct fusee_native *, uint64_t pc, bool *searched);
	void *arg;
};

#define WALK_MOST_GUESSES 16u

struct walk_guess {
	uint64_t pc, sp, caller_pc, caller_sp;
};

struct walk_guesses {
	uint32_t n;
	struct walk_guess at[WALK_MOST_GUESSES];
};

/* u is at a frame that is LEARN_UNKNOWN, of a sample of that time. Learns from its stack, and if
 * what is known by then leads to the outermost frame, sets *out to the steps of this and further
 * such frames. u is not changed. *seen: NULL at first. */
bool walk_learn(struct seen_frames **seen, struct fusee_native *, uint64_t time,
		const struct learn_ops *, struct walk_guesses *out);
/* Takes the step of this frame, if it is one of these; NULL: none. */
bool walk_apply_guess(struct fusee_native *, const struct walk_guesses *);
#endif

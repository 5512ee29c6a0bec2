/* SPDX-License-Identifier: Apache-2.0 */
/* Continuations of a walk over a stack copy: parts of the stack that the kernel has unwound with
 * their frames of languages. */
#ifndef UNWIND_WALK_CONTINUE_H
#define UNWIND_WALK_CONTINUE_H

#include <fusee/unwinder.bpf.h>

#include "unwind/walk_language.h"

/* If a continuation begins where the walk has come to, and no frames of languages are missing
 * before, appends its frames. true: it leads to the outermost frame. Otherwise the walk goes on,
 * and walk_skip() is to be called, to the end of the continuation. guessed: the step to this frame
 * was a guess. */
bool walk_continue(struct fusee_native *, bool guessed, struct walk *out);

/* The walk has added a frame. If it is inside of a continuation, which has that frame, removes it.
 * over: the walk has ended, so the continuation's end is not on this stack. */
void walk_skip(const struct fusee_native *, bool over, struct walk *out);
#endif

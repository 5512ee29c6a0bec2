/* SPDX-License-Identifier: Apache-2.0 */
/* Continuations of a walk over a stack copy: callers from one in a language's code on, which the
 * kernel has unwound with their frames of languages. */
#ifndef UNWIND_WALK_CONTINUE_H
#define UNWIND_WALK_CONTINUE_H

#include <fusee/unwinder.bpf.h>

#include "unwind/walk_language.h"

/* If a continuation begins where the walk has come to, and no frames of languages are missing
 * before, appends its frames. true: the walk is over. guessed: the step to this frame was a guess.
 */
bool walk_continue(const struct fusee_native *, bool guessed, struct walk *out);
#endif

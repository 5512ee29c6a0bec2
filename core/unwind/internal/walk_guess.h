/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that nothing proves: the last that is tried, and only in user space. */
#ifndef UNWIND_WALK_GUESS_H
#define UNWIND_WALK_GUESS_H

#include <fusee/unwinder.bpf.h>

#include "unwind/walk_language.h"

/* No unwinder could step this frame, for want of a register. If the sampled function was called by
 * it, which may be a private call that keeps other registers than the ABI says, the unwinder is
 * called again with those of the sample. FUSEE_NEXT, with FUSEE_GUESSED, if the caller that it
 * finds looks right: its return address lies right behind a call, and its sp is aligned as behind
 * one. Else FUSEE_STOP, and u is as it was. */
int walk_guess(struct fusee_native *, const struct fusee_unwinder_ops *);
/* Does a call end right before this address? */
bool walk_is_behind_call(struct fusee_native *, uint64_t pc);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forgets the names of removed code, so that of a process which makes code for ever no more are
 * kept than its code and the windows need. Nothing says when code is removed. So a process whose
 * emissions take more than a limit is looked through, in these steps, a second or more each:
 *
 *   1. ops->forget(BEGIN), and the kernel forgets what it has sent of the process.
 *   2. The kernel forgets once more what a walk has sent since that relied on what was sent before
 *      step 1. Stacks that are walked after this, at `since`, rely on emissions after step 1 alone.
 *   3. When all stacks that were walked before `since` are in a collector, or wait, their frames
 * are symbolized; then ops->forget(UNUSED) frees what neither these nor an emission has used.
 *
 * So at any time each frame of a collector, and each that will be in one, has its names. The limit
 * is then twice what remains: the work grows with what is emitted, and not with the time. For one
 * thread.
 */
#ifndef UNWIND_FORGETTING_H
#define UNWIND_FORGETTING_H

#include "unwind/claims.h"
#include "unwind/internal/walk_frames.h"

/* Was the last step a second or more ago? Then the next are taken now. */
bool forgetting_is_time(struct claims *, uint64_t now);

/* Steps 1 and 2, of processes that are due. true: the kernel has to forget what it has sent of
 * those for which forgetting_of() is true, and forgetting_passed() is called. */
bool forgetting_begin(struct claims *);
bool forgetting_of(void *claims, uint64_t process);
/* time: then the kernel had forgotten it; 0: it could not. */
void forgetting_passed(struct claims *, uint64_t time);

/* Step 3: is there a process whose stacks are read up to this time? Then forgetting_use() is called
 * with each frame that is kept, and after that forgetting_end(). */
bool forgetting_may_end(const struct claims *, uint64_t as_of);
void forgetting_use(struct claims *, const struct walk_frame *);
void forgetting_end(struct claims *, uint64_t as_of);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that no table expresses: the worker, which has a full CFI interpreter, takes them. */
#ifndef UNWIND_WALK_WORKER_H
#define UNWIND_WALK_WORKER_H

#include <fusee/unwinder.bpf.h>

#include "unwind/walk_language.h"

#define WALK_STEP_FAILS -1
#define WALK_STEP_WAITS -2

/* Makes the walk's steps. false: it has none and may have none, or no memory. */
bool walk_make_steps(struct walker *);
/* Does the worker step first? Only in a walk that stopped before because a register was not known.
 */
bool walk_worker_steps_first(const struct walker *, const struct process_mapping *);
/* One step. enum fusee_next; WALK_STEP_FAILS, WALK_STEP_WAITS. */
int walk_step_by_worker(struct walker *, struct fusee_native *, const struct process_mapping *);
#endif

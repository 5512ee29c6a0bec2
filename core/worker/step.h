/* SPDX-License-Identifier: Apache-2.0 */
/* In the worker: one step by libunwind over a stack copy and the file's own unwind information. */
#ifndef WORKER_STEP_H
#define WORKER_STEP_H

#include "worker/protocol.h"

struct stepper;

int stepper_new(struct stepper **);  /* 0 or -ENOMEM */
void stepper_free(struct stepper *); /* NULL is fine */
/* q: a REQUEST_STEP; its regs and valid become the caller's. Takes fd over: it is kept for the next
 * steps in this file (by q->key). 0, 1: it was a signal frame, or -errno as worker_step() in
 * worker.h. */
int stepper_step(struct stepper *, struct protocol_request *q, int fd, const void *stack);
#endif

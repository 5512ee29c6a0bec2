/* SPDX-License-Identifier: Apache-2.0 */
/* In the worker: one step by libunwind over a stack copy and the unwind sections of a file. */
#ifndef WORKER_STEP_H
#define WORKER_STEP_H

#include "worker/internal/protocol.h"

struct stepper;

int stepper_new(struct stepper **);  /* 0 or -ENOMEM */
void stepper_free(struct stepper *); /* NULL is valid */
/* q: a REQUEST_STEP, whose regs and valid become the caller's. Owns fd, also on failure, and keeps
 * it open for further steps with the same q->key. Returns as worker_step() in worker.h. */
int stepper_step(struct stepper *, struct protocol_request *q, int fd, const void *stack);
#endif

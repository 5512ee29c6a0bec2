/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registers of the threads of a process that are off their CPUs, so that their stacks can be taken
 * without a stop. For one thread.
 */
#ifndef DUMP_SAVED_REGISTERS_H
#define DUMP_SAVED_REGISTERS_H

#include <stdbool.h>
#include <sys/types.h>

#include "programs/task_registers.h"

struct saved_registers;

/* source: borrowed. NULL: no memory. */
struct saved_registers *saved_registers_new(struct task_registers *source, pid_t pid);
void saved_registers_free(struct saved_registers *); /* NULL is fine */
/* The registers of the thread, read at most some milliseconds ago. NULL: the thread was running
 * then. Valid until the next call. */
const struct task_record *saved_registers_of(struct saved_registers *, pid_t tid);
/* Whether the thread has not run since its record was made. */
bool saved_registers_hold(const struct saved_registers *, const struct task_record *);
#endif

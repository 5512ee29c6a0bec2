/* SPDX-License-Identifier: Apache-2.0 */
/*
 * User registers of the threads of a process that are off their CPUs, as the kernel saved them:
 * nothing is stopped. And what uretprobes have replaced in their stacks. It needs CAP_BPF and
 * CAP_PERFMON. For one thread.
 */
#ifndef PROGRAMS_TASK_REGISTERS_H
#define PROGRAMS_TASK_REGISTERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "../../bpf/records.h"

struct task_registers;

/* 0; -errno: the kernel has no such iterator or does not permit it, or pids here are not those of
 * the first pid namespace. */
int task_registers_open(struct task_registers **ret, pid_t pid);
void task_registers_close(struct task_registers *); /* NULL is fine */
/* Calls each() for each thread that is off its CPU. 0 or -errno. */
int task_registers_read(struct task_registers *,
			void (*each)(void *arg, const struct task_record *), void *arg);
/* Reads the return addresses that uretprobes have replaced of a thread of the process, which does
 * not run. n 0: none. 0 or -errno. */
int task_registers_returns(struct task_registers *, pid_t tid, struct task_returns *);
#endif

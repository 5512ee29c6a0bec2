/* SPDX-License-Identifier: Apache-2.0 */
/* How long a process had to wait for a CPU, by the kernel's own account: /proc/PID/schedstat,
 * second number. Kernels without CONFIG_SCHED_INFO have none. */
#ifndef OPENER_RUNQUEUE_H
#define OPENER_RUNQUEUE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A descriptor for runqueue_wait_ns(), the caller's; -1: there is none. */
int runqueue_open(pid_t);
/* ns since the process has begun; a wait that goes on counts once it is over. 0: fd is -1. */
uint64_t runqueue_wait_ns(int fd);
/* The process has a CPU or waits for one: it does not wait for a file system. */
bool runqueue_has(pid_t);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* How long a process has waited for a CPU: the second number of /proc/PID/schedstat. Kernels
 * without CONFIG_SCHED_INFO do not count it. */
#ifndef OPENER_RUNQUEUE_H
#define OPENER_RUNQUEUE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A descriptor for runqueue_wait_ns(), which the caller closes; -1: the kernel has no count. */
int runqueue_open(pid_t);
/* ns since the process was started; a wait counts once it is over. 0: fd is -1. */
uint64_t runqueue_wait_ns(int fd);
/* Whether the process has a CPU or waits for a CPU, and so not for a file system. */
bool runqueue_has(pid_t);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts moves of processes between control groups in the kernel. No perf event reports them, and
 * to read the control group of every process again and again would be most of the work of an idle
 * agent.
 */
#ifndef PROGRAMS_CGROUP_MOVES_H
#define PROGRAMS_CGROUP_MOVES_H

#include <stdint.h>

struct cgroup_moves;

/* Loads a program of a few instructions. 0 or -errno: it is not permitted, or the kernel has no
 * such tracepoints. */
int cgroup_moves_open(struct cgroup_moves **ret);
void cgroup_moves_close(struct cgroup_moves *); /* NULL is fine */
/* A number that differs after each move of a process or thread, and when a hierarchy or the name of
 * a group changes. 0 only for NULL. A process that began in another group (clone3 with
 * CLONE_INTO_CGROUP) did not move. */
uint64_t cgroup_moves_count(const struct cgroup_moves *);
#endif

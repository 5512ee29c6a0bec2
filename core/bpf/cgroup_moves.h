/* SPDX-License-Identifier: Apache-2.0 */
/* Moves between control groups, counted by the kernel: no event tells of them, and to read every
 * process's control group over and over is most of what an agent does that has nothing to do. */
#ifndef BPF_CGROUP_MOVES_H
#define BPF_CGROUP_MOVES_H

#include <stdint.h>

struct cgroup_moves;

/* Loads a program of a few instructions. 0 or -errno: the kernel does not let us, or has no such
 * tracepoints. */
int cgroup_moves_open(struct cgroup_moves **ret);
void cgroup_moves_close(struct cgroup_moves *); /* NULL is fine */
/* Another number after each move of a process or a thread, and where a hierarchy or a group's name
 * changes; never 0 but for NULL. A process that was put into another group when it began (clone3's
 * CLONE_INTO_CGROUP) did not move. */
uint64_t cgroup_moves_count(const struct cgroup_moves *);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The targets of a recording and all processes that they start, if the CPUs' events sample them.
 * The kernel takes the ticks of these processes; a child has its parent's decision from its fork on
 * (bpf/rates.h). User space follows forks by records, to know whose mappings to read. For one
 * thread.
 */
#ifndef SAMPLING_PROCESS_TREE_H
#define SAMPLING_PROCESS_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/sampler.h"

struct process_tree;

#define PROCESS_TREE_GROUPS 8u /* control groups that are followed */

/* The BPF sampler is borrowed; from now on it takes the ticks of processes of the tree only. 0 or
 * -ENOMEM. */
int process_tree_new(struct process_tree **ret, struct bpf_sampler *);
void process_tree_free(struct process_tree *); /* NULL is fine */
/* Adds a process; held: sampled from its next exec on. 0 or -errno: it is not sampled.
 */
int process_tree_add(struct process_tree *, pid_t pid, bool held);
/* Adds the processes of this control group and of those below it, also processes that join later.
 * dir: its folder, borrowed. If the kernel cannot decide about members (v1, kernels before 5.15),
 * the group is read repeatedly. 0 or -errno. */
int process_tree_follow_group(struct process_tree *, const char *dir);
/* Reads groups about which the kernel does not decide, if it is time. now: CLOCK_MONOTONIC ns. */
void process_tree_poll(struct process_tree *, uint64_t now);
bool process_tree_has(struct process_tree *, pid_t pid);
/* To be called for each record of a fork, in order of time. */
void process_tree_forked(struct process_tree *, pid_t parent, pid_t child);
/* After lost records: adds the processes of the kernel's tree, and calls added() for each unknown
 * process. */
void process_tree_reread(struct process_tree *, void (*added)(void *arg, pid_t pid), void *arg);
/* Forgets processes that have ended. To be called now and then. */
void process_tree_sweep(struct process_tree *);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The targets of a recording and all that they start, where the CPUs' events sample them: the
 * kernel takes the ticks of these processes, and a child has its parent's decision since its fork
 * (bpf/rates.h). User space follows by records of forks, to know whose mappings it reads. For one
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
/* Adds a process; held: its ticks are taken from its next exec on. 0 or -errno: it is not sampled.
 */
int process_tree_add(struct process_tree *, pid_t pid, bool held);
/* Processes that run in this control group, or in one below it, are of the tree from then on, when
 * they join it later too. dir: its folder, borrowed. Where the kernel can't decide it (v1, kernels
 * before 5.15), the group is read again and again. 0 or -errno. */
int process_tree_follow_group(struct process_tree *, const char *dir);
/* Reads groups of which the kernel does not decide, if it is time. now: CLOCK_MONOTONIC ns. */
void process_tree_poll(struct process_tree *, uint64_t now);
bool process_tree_has(struct process_tree *, pid_t pid);
/* A record of a fork; in order of time. */
void process_tree_forked(struct process_tree *, pid_t parent, pid_t child);
/* Records may be missing: adds the processes that the kernel has, and calls added() for each that
 * was not known. */
void process_tree_reread(struct process_tree *, void (*added)(void *arg, pid_t pid), void *arg);
/* Forgets processes that have ended. Now and then. */
void process_tree_sweep(struct process_tree *);
#endif

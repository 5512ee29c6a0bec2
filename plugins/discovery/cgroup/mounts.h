/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the mounts of control groups (cgroups(7), proc_pid_mountinfo(5)). */
#ifndef CGROUP_MOUNTS_H
#define CGROUP_MOUNTS_H

#include <stdint.h>

#define MAX_TREES 3u

/* A hierarchy to watch: its mount point, and the path of the mount's root within the hierarchy. */
struct tree {
	char point[4096];
	char root[4096]; /* "" for the hierarchy's own root */
};

/* The hierarchies in which a process's own path may be found: v2's, name=systemd, and the first of
 * pids, memory, cpu, cpuacct, devices, freezer. `instead`: a folder with the layout of
 * /sys/fs/cgroup; "": the mounts of this process. 0, or -ENOMEM: not all were read. */
int mounts_find(const char *instead, struct tree trees[MAX_TREES], uint32_t *n);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In a cgroup namespace of its own, as containers have it, a process sees the paths of control
 * groups from its own group: in /pods/pod1/c the group /pods/pod2/d is "/../../pod2/d". Where the
 * machine's hierarchy is mounted too (the host's /sys/fs/cgroup), they can be made those of the
 * machine. cgroup_namespaces(7). [any thread]
 */
#ifndef PROCESS_CGROUP_NAMESPACE_H
#define PROCESS_CGROUP_NAMESPACE_H

#include <sys/types.h>

#include "process/cgroup.h"

/*
 * Where the namespace of the process `self`, which is the caller, begins in a hierarchy that is
 * mounted from above it: "/pods/pod1/c". root: "", or what precedes "/proc" in tests. out:
 * CGROUP_MAX bytes, "" unless 0 is returned. *rank: of the hierarchy. 0; -ENOENT: no hierarchy is
 * mounted from above the namespace, or the process is in none of its groups; -ENOMEM; -errno.
 */
int cgroup_namespace_find(const char *root, pid_t self, char *out, size_t *rank);
/* Makes the path of a control group of that hierarchy (CGROUP_MAX bytes), as /proc/PID/cgroup has
 * it, one from the root of that mount. A path that leads above it, or would be too long, stays as
 * it is, and all do with base "". */
void cgroup_namespace_resolve(const char *base, char *path);

/* The namespace of this process, so that the paths of others are those of the machine. */
struct cgroup_namespace {
	char base[CGROUP_MAX]; /* "": paths stay as they are */
	size_t rank;
};
/* 0 or -ENOMEM. */
int cgroup_namespace_open(struct cgroup_namespace *);
/* cgroup_of(), as a path of the machine. -ESRCH also for a process that exits and is shown in the
 * root of version 1, where it did not run. */
int cgroup_namespace_of(const struct cgroup_namespace *, pid_t pid, char *path);
#endif

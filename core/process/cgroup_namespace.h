/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In a cgroup namespace of its own, such as a container's, a process sees the paths of control
 * groups relative to its own group: in /pods/pod1/c the group /pods/pod2/d is "/../../pod2/d". If
 * the machine's hierarchy is mounted too (the host's /sys/fs/cgroup), such paths can be converted
 * to those of the machine. cgroup_namespaces(7). [any thread]
 */
#ifndef PROCESS_CGROUP_NAMESPACE_H
#define PROCESS_CGROUP_NAMESPACE_H

#include <sys/types.h>

#include "process/cgroup.h"

/*
 * The path at which the namespace of the process `self`, the caller, begins in a hierarchy that is
 * mounted from above it: "/pods/pod1/c". root: "", or what precedes "/proc" in tests. out:
 * CGROUP_MAX bytes, "" unless 0 is returned. *rank: of the hierarchy, as cgroup_of() has it. 0;
 * -ENOENT: no hierarchy is mounted from above the namespace, or the process is in none of its
 * groups; -ENOMEM; -errno.
 */
int cgroup_namespace_find(const char *root, pid_t self, char *out, size_t *rank);
/* Converts the path of a control group of that hierarchy (CGROUP_MAX bytes), as /proc/PID/cgroup
 * has it, to a path from the root of that mount. A path that leads above this root, or would be too
 * long, is not changed; with base "" no path is. */
void cgroup_namespace_resolve(const char *base, char *path);

/* The namespace of this process. */
struct cgroup_namespace {
	char base[CGROUP_MAX]; /* cgroup_namespace_find(); "": paths are not converted */
	size_t rank;           /* of the hierarchy whose paths are converted */
};
/* 0 or -ENOMEM. */
int cgroup_namespace_open(struct cgroup_namespace *);
/* cgroup_of(), as a path of the machine. Also -ESRCH for a process that is exiting and whose path
 * is
 * "/": version 1 moves exiting processes there. */
int cgroup_namespace_of(const struct cgroup_namespace *, pid_t pid, char *path);
#endif

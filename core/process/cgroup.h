/* SPDX-License-Identifier: Apache-2.0 */
/* Control groups of processes: /proc/PID/cgroup, v1, v2 and both mixed (cgroups(7)). [any thread]
 */
#ifndef PROCESS_CGROUP_H
#define PROCESS_CGROUP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <fusee/profile.h>

#define CGROUP_MAX 4096 /* bytes of a path, with its NUL */
#define CGROUP_NO_RANK SIZE_MAX

/*
 * The path that describes a process best: v1's name=systemd unless that is the root (where v1 and
 * v2 are mixed, containers are in v1, and v2 has the runtime's service), else v2's, else that of
 * the first of pids, memory, cpu, cpuacct, devices, freezer or another hierarchy that is not the
 * root, else "/". root: "", or what precedes "/proc" in tests. out: CGROUP_MAX bytes. *rank: the
 * place of the hierarchy in that order, CGROUP_NO_RANK: "/"; rank NULL is fine. 0 or -errno;
 * -ESRCH: no such process; -EBADMSG.
 */
int cgroup_of(const char *root, pid_t pid, char *out, size_t *rank);
/* The folder of a control group. path: from the hierarchy's root or as mounted; the hierarchy is
 * the first in /proc/self/mountinfo that has it. dir: CGROUP_MAX bytes. 0; -ENOENT: none has;
 * -errno. */
int cgroup_find(const char *path, char *dir);
/* Calls each() for the processes of the control group with this folder and of those below it. 0, or
 * a non-zero value of each(), which ends the calls. */
int cgroup_each_process(const char *dir, int (*each)(void *arg, pid_t pid), void *arg);
/* The kernel's number of the control group with this folder. 0; -ENOTSUP: it is not of the v2
 * hierarchy, whose groups alone have one; -errno. */
int cgroup_id(const char *dir, uint64_t *id);
#endif

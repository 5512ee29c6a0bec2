/* SPDX-License-Identifier: Apache-2.0 */
/* Control groups of processes: /proc/PID/cgroup, v1, v2 and both mixed (cgroups(7)). [any thread]
 */
#ifndef PROCESS_CGROUP_H
#define PROCESS_CGROUP_H

#include <stdint.h>
#include <sys/types.h>

#include <fusee/profile.h>

#define CGROUP_MAX 4096 /* bytes of a path, with its NUL */

/*
 * The path that describes a process best: v1's name=systemd unless that is the root (where v1 and
 * v2 are mixed, containers are in v1, and v2 has the runtime's service), else v2's, else that of
 * the first of pids, memory, cpu, cpuacct, devices, freezer or another hierarchy that is not the
 * root, else "/". root: "", or what precedes "/proc" in tests. out: CGROUP_MAX bytes. 0 or -errno;
 * -ESRCH: no such process; -EBADMSG.
 */
int cgroup_of(const char *root, pid_t pid, char *out);
/* The same choice from the text of /proc/PID/cgroup. 0 or -EBADMSG. */
int cgroup_parse(const char *text, char *out);
/* Calls each() for the processes of a control group and those below it. path: from the hierarchy's
 * root or as mounted; the hierarchy is the first in /proc/self/mountinfo that has it. -ENOENT: none
 * has; -errno; a non-zero value of each(), which ends the calls. */
int cgroup_each_process(const char *path, int (*each)(void *arg, pid_t pid), void *arg);
#endif

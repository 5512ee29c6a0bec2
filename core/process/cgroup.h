/* SPDX-License-Identifier: Apache-2.0 */
/* Control groups as a process sees them: /proc/PID/cgroup, v1, v2 and both (cgroups(7)). */
#ifndef PROCESS_CGROUP_H
#define PROCESS_CGROUP_H

#include <stdint.h>
#include <sys/types.h>

#include <fusee/profile.h>

#define CGROUP_MAX 4096

/*
 * The path that says most of the process: v1's name=systemd where that is not the root (where v1
 * and v2 are mixed, containers are in v1 and v2 says the runtime's service), else v2's, else of the
 * first of pids, memory, cpu, cpuacct, devices, freezer, others that is not the root;
 * "/" where all are. root: "" or the prefix of proc ("/proc" follows), for tests. 0 or -errno;
 * -ESRCH: no such process. out has CGROUP_MAX bytes.
 */
int cgroup_of(const char *root, pid_t pid, char *out);
/* The same choice from the text of such a file. */
int cgroup_parse(const char *text, char *out);
/* The processes of the cgroup and those below it, by its path in whatever hierarchy has it under
 * /sys/fs/cgroup (from /proc/self/mountinfo): calls each for each. -ENOENT: no hierarchy has it. */
int cgroup_each_process(const char *path, int (*each)(void *arg, pid_t pid), void *arg);
#endif

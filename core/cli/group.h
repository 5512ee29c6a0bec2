/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that a command is to profile, by their numbers, control group or container. */
#ifndef CLI_GROUP_H
#define CLI_GROUP_H

#include "cli/session.h"

/* "12,345". What is wrong with it was logged: EX_USAGE. */
int group_add_pids(struct session_options *, const char *list);
/* Adds the processes of a control group and those below it: "/system.slice/x.service", or its path
 * under /sys/fs/cgroup. 0, or an exit code; what is wrong was logged. */
int group_add_cgroup(struct session_options *, const char *path);
/* Of the container whose id begins with this: at least 4 hex digits, or a machine's whole name. */
int group_add_container(struct session_options *, const char *id);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Processes named by their control group or container. */
#ifndef CLI_GROUP_H
#define CLI_GROUP_H

#include "cli/session.h"

/* Adds the processes of a control group and those below it: "/system.slice/x.service", or its path
 * under /sys/fs/cgroup. 0, or an exit code; what is wrong was logged. */
int group_add_cgroup(struct session_options *, const char *path);
/* Of the container whose id begins with this: at least 4 hex digits, or a machine's whole name. */
int group_add_container(struct session_options *, const char *id);
#endif

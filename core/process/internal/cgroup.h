/* SPDX-License-Identifier: Apache-2.0 */
/* The choice between the hierarchies of control groups. */
#ifndef PROCESS_INTERNAL_CGROUP_H
#define PROCESS_INTERNAL_CGROUP_H

#include "process/cgroup.h"

/* The choice of cgroup_of(), from the text of /proc/PID/cgroup. 0 or -EBADMSG. */
int cgroup_parse(const char *text, char *out, size_t *rank);
/* The place of a hierarchy in that order, from 0. controllers: of v1, divided by commas; "": v2. */
size_t cgroup_rank(const char *controllers);
#endif

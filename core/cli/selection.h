/* SPDX-License-Identifier: Apache-2.0 */
/* What a command line selects for profiling: processes by number, control group or container; all
 * processes; or a command to run. Errors are logged; the functions return exit codes. */
#ifndef CLI_SELECTION_H
#define CLI_SELECTION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "process/cgroup.h"

#define SELECTION_MAX_PIDS 4096u
#define SELECTION_MAX_GROUPS 8u

struct selection {
	pid_t pids[SELECTION_MAX_PIDS];
	uint32_t npids;
	bool all;
	char *const *command; /* its arguments, ends with NULL; NULL: none */
	/* Folders of the control groups that are selected, or that the containers are. */
	char groups[SELECTION_MAX_GROUPS][CGROUP_MAX];
	uint32_t ngroups;
};

/* "12,345". 0 or EX_USAGE. */
int selection_add_pids(struct selection *, const char *list);
/* The processes of a control group and of those below it: "/system.slice/x.service", or its path
 * under /sys/fs/cgroup. 0 or an exit code. */
int selection_add_cgroup(struct selection *, const char *path);
/* The processes of a container. id: the first digits of its id, at least 4, or the complete name of
 * a machine. 0 or an exit code. */
int selection_add_container(struct selection *, const char *id);
/* How many of pids, all and command are given: a command takes exactly 1. */
int selection_kinds(const struct selection *);
#endif

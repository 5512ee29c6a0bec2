/* SPDX-License-Identifier: Apache-2.0 */
/* What a command line selects for profiling: processes by number, control group, unit, pod or
 * container; all processes; or a command to run. Errors are logged; the functions return exit
 * codes. */
#ifndef SELECTION_SELECTION_H
#define SELECTION_SELECTION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "selection/found.h"
#include "process/cgroup.h"

#define SELECTION_MAX_PIDS 4096u
#define SELECTION_MAX_GROUPS 8u
#define SELECTION_MAX_NAMES 32u
#define SELECTION_MAX_DISCOVER 16u

/* A name of a unit, pod or container, as typed. */
struct selection_name {
	enum name_kind kind;
	const char *text; /* borrowed */
};

struct selection {
	pid_t pids[SELECTION_MAX_PIDS];
	uint32_t npids;
	bool all;
	bool children; /* those of pids, too, that run already: selection_find_names() adds them */
	char *const *command; /* its arguments, ends with NULL; NULL: none */
	/* Folders of the control groups that are selected, or that the containers are. */
	char groups[SELECTION_MAX_GROUPS][CGROUP_MAX];
	uint32_t ngroups;
	/* Names whose processes selection_find_names() adds, and what it runs to find them. */
	struct selection_name names[SELECTION_MAX_NAMES];
	const char *discover[SELECTION_MAX_DISCOVER]; /* --discover */
	uint32_t nnames, ndiscover;
	struct found *found; /* what was found for the names; owned; NULL: nothing yet */
};

/* "12,345". 0 or EX_USAGE. */
int selection_add_pids(struct selection *, const char *list);
/* The processes of a control group and of those below it: "/system.slice/x.service", or its path
 * under /sys/fs/cgroup. 0 or an exit code. */
int selection_add_cgroup(struct selection *, const char *path);
/* The processes of a container. id: the first digits of its id, at least 4, or the complete name of
 * a machine. 0; -ENOENT, without an error that was logged: there is none; or an exit code. */
int selection_add_container(struct selection *, const char *id);
/* A name, whose processes are found later. Borrowed. 0 or EX_USAGE. */
int selection_add_name(struct selection *, enum name_kind, const char *text);
/* An option --discover, "kubernetes:node=worker-3". Borrowed. 0 or EX_USAGE. */
int selection_add_discover(struct selection *, const char *spec);
/* One process; fusee and its children are not added. 0; -E2BIG after SELECTION_MAX_PIDS. */
int selection_add_process(struct selection *, pid_t);
/* The control group with this folder: processes that join it are selected too. 0 or EX_USAGE. */
int selection_add_group(struct selection *, const char *dir);
/* Logs that there are more processes than a selection can have. EX_USAGE. */
int selection_too_many(void);
/* How many of processes, all and command are given: a command takes exactly 1. */
int selection_kinds(const struct selection *);
void selection_fini(struct selection *); /* {0} is fine */
#endif

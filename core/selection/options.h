/* SPDX-License-Identifier: Apache-2.0 */
/* The options of `record`, `dump` and `top` that select running processes. */
#ifndef SELECTION_OPTIONS_H
#define SELECTION_OPTIONS_H

#include "console/options.h"
#include "selection/selection.h"

/* As .set of a CLI_MEMBER that is a struct selection. */
int selection_set_pids(void *selection, const char *list);
int selection_set_cgroup(void *selection, const char *path);
int selection_set_unit(void *selection, const char *name);
int selection_set_pod(void *selection, const char *name);
int selection_set_container(void *selection, const char *name);
int selection_set_discover(void *selection, const char *spec);

/* The rows of an option table; at: the offset of the struct selection. */
#define SELECTION_OPTION(at, option, value, help, call)                         \
	{                                                                       \
		option, 0, value, help, CLI_MEMBER, .offset = (at), .set = call \
	}
#define SELECTION_NAME_OPTIONS(at)                                                               \
	{"children", 0,                                                                          \
	 NULL,       "with -p: their children that run already, too",                            \
	 CLI_TRUE,   .offset = (at) + offsetof(struct selection, children)},                     \
		SELECTION_OPTION(at, "unit", "UNIT",                                             \
				 "the same of a unit of systemd: nginx, getty@tty1, user.slice", \
				 selection_set_unit),                                            \
		SELECTION_OPTION(at, "pod", "POD",                                               \
				 "the same of a pod on this node: NAMESPACE/NAME",               \
				 selection_set_pod),                                             \
		SELECTION_OPTION(at, "container", "CONTAINER",                                   \
				 "the same of a container: its name, or the first digits of\n"   \
				 "its id; with --pod: of the container of that pod",             \
				 selection_set_container),                                       \
		SELECTION_OPTION(at, "discover", "DISCOVERY",                                    \
				 "options of a plugin that finds these, as of fusee run:\n"      \
				 "kubernetes:kubeconfig=/etc/kubernetes/kubelet.conf",           \
				 selection_set_discover)

/* Adds the children of processes by number, if these are selected, and the processes and control
 * groups of the selection's names. Discovery plugins run once, for 5
 * s at most, and o->found has what they found; for ids of containers that of control groups, which
 * has labels for them, and those of --discover. 0, or an exit code after one error or more were
 * logged. */
int selection_find_names(const struct cli_command *, struct selection *o);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Finds a mapping of this process, for procfs_each_mapping(). */
#ifndef MAPPING_HELP_H
#define MAPPING_HELP_H

#include <stdio.h>
#include <string.h>

#include "process/procfs.h"

/* The first whose name has this in it; m.name is its copy. */
struct expected_mapping {
	const char *name;
	struct procfs_mapping m;
	char copy[256];
};

static int find_mapping(void *arg, const struct procfs_mapping *m)
{
	struct expected_mapping *w = arg;

	if (!strstr(m->name, w->name))
		return 0;
	w->m = *m;
	snprintf(w->copy, sizeof(w->copy), "%s", m->name);
	w->m.name = w->copy;
	return 1;
}
#endif

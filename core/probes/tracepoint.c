/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/tracepoint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

int tracepoint_find(struct probe_points *p, const char *name, const struct probe_filter *f,
		    char **why)
{
	char *copy;

	if (p->n == MOST_TRACEPOINTS) {
		if (asprintf(why, "more than %u tracepoints", MOST_TRACEPOINTS) < 0)
			*why = NULL;
		return -EINVAL;
	}
	copy = strdup(name);
	if (!copy || !ARRAY_ROOM(p->at, p->n, p->cap)) {
		free(copy);
		return -ENOMEM;
	}
	p->at[p->n++] = (struct probe_point){
		.path = copy, .program = PROBE_TRACEPOINT, .filter = *f};
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "selection/internal/children.h"

#include <errno.h>
#include <string.h>
#include <sysexits.h>

#include "base/log.h"
#include "process/procfs.h"

static bool has(const struct selection *o, pid_t pid)
{
	for (uint32_t i = 0; i < o->npids; i++)
		if (o->pids[i] == pid)
			return true;
	return false;
}

static int see(void *arg, pid_t pid)
{
	struct selection *o = arg;
	pid_t parent;

	if (has(o, pid) || procfs_parent(pid, &parent) || !has(o, parent))
		return 0;
	return selection_add_process(o, pid);
}

/* A child may have a lower pid than its parent, and new children come meanwhile: until a pass over
 * /proc has found none. */
int selection_add_children(struct selection *o)
{
	uint32_t before;
	int r;

	do {
		before = o->npids;
		r = procfs_each_process(see, o);
	} while (!r && o->npids > before);
	if (r == -E2BIG)
		return selection_too_many();
	if (r) {
		log_error("the processes in /proc cannot be listed: %s", strerror(-r));
		return EX_OSERR;
	}
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/internal/tracked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fusee/helpers.h>

#include "process/cgroup.h"
#include "target/labelset.h"
#include "process/procfs.h"

void tracked_reset(struct tracked *t)
{
	free(t->executable);
	free(t->cgroup);
	free(t->program);
	t->executable = t->cgroup = NULL;
	t->program = NULL;
	t->read = t->inherited = (struct cgroup_reading){0};
	t->known = t->kernel = false;
}

void tracked_inherit(struct tracked *child, const struct tracked *parent)
{
	child->kernel = parent->kernel;
	child->known = parent->known;
	memcpy(child->name, parent->name, sizeof(child->name));
	child->cgroup = parent->cgroup ? strdup(parent->cgroup) : NULL;
	child->inherited = parent->read.moves ? parent->read : parent->inherited;
	child->executable = parent->executable ? strdup(parent->executable) : NULL;
	child->program = parent->program ? malloc(sizeof(*child->program)) : NULL;
	if (child->program)
		*child->program = *parent->program;
}

void tracked_free(struct tracked *t)
{
	tracked_reset(t);
	free(t);
}

int tracked_read_name(struct tracked *t)
{
	char exe[4096], comm[16], *base;
	ssize_t n = procfs_exe(t->pid, exe, sizeof(exe));
	int r;

	t->kernel = false;
	if (n < 0) { /* a kernel thread, a zombie, or no permission */
		r = procfs_is_kernel(t->pid, &t->kernel);
		if (!r)
			r = procfs_comm(t->pid, t->pid, comm);
		if (!r)
			snprintf(t->name, sizeof(t->name), "%s", comm);
		return r;
	}
	exe[fusee_path_length(exe, (size_t)n)] = '\0';
	base = strrchr(exe, '/');
	snprintf(t->name, sizeof(t->name), "%.*s", (int)sizeof(t->name) - 1, base ? base + 1 : exe);
	free(t->executable);
	t->executable = strndup(exe, LABELSET_VALUE_MAX + 4); /* a label truncates it */
	return 0;
}

int tracked_read_cgroup(struct tracked *t, const struct cgroup_namespace *at, bool *changed)
{
	char path[CGROUP_MAX];
	int r = cgroup_namespace_of(at, t->pid, path);

	*changed = !r && (!t->cgroup || strcmp(t->cgroup, path));
	if (*changed) {
		free(t->cgroup);
		t->cgroup = strdup(path);
	}
	return r;
}

struct target_process tracked_target(const struct tracked *t)
{
	return (struct target_process){.pid = t->pid,
				       .identity = t->identity,
				       .cgroup = t->cgroup ? t->cgroup : "",
				       .name = t->name,
				       .executable = t->executable,
				       .build_id = t->program ? t->program->build_id : NULL,
				       .compiler = t->program ? t->program->compiler : NULL};
}

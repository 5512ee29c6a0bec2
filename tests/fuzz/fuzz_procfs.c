// SPDX-License-Identifier: Apache-2.0
// clang-format off
// sources: core/process/procfs.c core/process/identity.c core/process/kept.c core/process/cgroup.c core/base/buf.c
// flags: -Wl,--wrap=open -Wl,--wrap=fopen -Wl,--wrap=stat -Wl,--wrap=fts_open
// libs:
// clang-format on
// Texts of /proc: a process chooses its name, the names of its mappings and the depth of its
// control groups, and a container what is mounted. What is read is in order, terminated, and of
// this text.
#include "files.h"
#include <fts.h>

#include "process/cgroup.h"
#include "process/procfs.h"

#define PID 777777

FTS *__wrap_fts_open(char *const *paths, int options,
		     int (*compare)(const FTSENT **, const FTSENT **));

static bool is_ours(const char *path)
{
	return active &&
	       (!strncmp(path, "/proc/777777/", 13) || !strcmp(path, "/proc/self/mountinfo"));
}

int __wrap_stat(const char *path, struct stat *st)
{
	if (!active)
		return __real_stat(path, st);
	if (strlen(path) >= 8200)
		abort();
	*st = (struct stat){.st_mode = S_IFDIR};
	return 0;
}

/* The folder would be walked now. */
FTS *__wrap_fts_open(char *const *paths, int options,
		     int (*compare)(const FTSENT **, const FTSENT **))
{
	(void)options;
	(void)compare;
	if (!memmem(text, length, paths[0], strcspn(paths[0], "/")) || !strstr(paths[0], "/a/b") ||
	    paths[1])
		abort();
	return NULL;
}

static int each_mapping(void *arg, const struct procfs_mapping *m)
{
	uint32_t *n = arg;

	if (m->lo >= m->hi || strchr(m->name, '\n') ||
	    (*m->name && !memmem(text, length, m->name, strlen(m->name))))
		abort();
	return ++*n > 100;
}

static int each_process(void *arg, pid_t pid)
{
	(void)arg;
	return pid <= 0;
}

static void processes(void)
{
	uint64_t ticks = 0, user = 0, system = 0;
	struct procfs_status status;
	bool kernel = false;
	uint32_t n = 0;
	char comm[16];

	procfs_each_mapping(PID, each_mapping, &n);
	if (!procfs_comm(PID, PID, comm) && (strnlen(comm, 16) == 16 || strchr(comm, '\n')))
		abort();
	procfs_start_ticks(PID, &ticks);
	procfs_identity(PID, &ticks);
	procfs_is_kernel(PID, &kernel);
	procfs_is_exiting(PID);
	procfs_cpu_ns(PID, &user, &system);
	if (!procfs_status(PID, &status) && status.ns_pid <= 0)
		abort();
}

static void groups(void)
{
	char path[CGROUP_MAX], dir[CGROUP_MAX];

	if (!cgroup_of("", PID, path, NULL) &&
	    (*path != '/' || strlen(path) >= CGROUP_MAX || strchr(path, '\n')))
		abort();
	if (!cgroup_find("/a/b", dir))
		cgroup_each_process(dir, each_process, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	text = data;
	length = size;
	active = true;
	processes();
	groups();
	active = false;
	return 0;
}

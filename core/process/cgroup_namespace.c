/* SPDX-License-Identifier: Apache-2.0 */
#include "process/cgroup_namespace.h"

#include <errno.h>
#include <fts.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process/internal/cgroup.h"
#include "process/procfs.h"

/* A hierarchy that is mounted from above the namespace. */
struct above {
	char point[CGROUP_MAX];
	int levels;  /* groups from its root down to the namespace; 0: none is mounted */
	size_t rank; /* cgroup_rank() */
};

/* "/../.." has two levels. -1: it is another path. */
static int levels_of(const char *root)
{
	int n = 0;

	for (; !strncmp(root, "/..", 3); root += 3)
		n++;
	return *root ? -1 : n;
}

/* "36 35 98:0 ROOT POINT rw,.. shared:1 - cgroup2 cgroup2 rw,OPTIONS" */
static void note_mount(struct above *a, char *line)
{
	char *fields[5], *rest = line, *type = strstr(line, " - "), *options;
	bool v2 = type && !strncmp(type + 3, "cgroup2 ", 8);
	int n = 0, levels;
	size_t rank;

	if (!type || (!v2 && strncmp(type + 3, "cgroup ", 7)))
		return;
	options = strrchr(type, ' ') + 1;
	options[strcspn(options, "\n")] = '\0';
	while (n < 5 && (fields[n] = strsep(&rest, " ")))
		n++;
	levels = n == 5 ? levels_of(fields[3]) : -1;
	rank = cgroup_rank(v2 ? "" : options);
	if (levels <= 0 || (a->levels && rank >= a->rank) || strlen(fields[4]) >= sizeof(a->point))
		return;
	strcpy(a->point, fields[4]);
	a->levels = levels;
	a->rank = rank;
}

static int find_mount(const char *root, struct above *a)
{
	char path[CGROUP_MAX], *line = NULL;
	size_t cap = 0;
	bool complete;
	FILE *f;

	snprintf(path, sizeof(path), "%s/proc/self/mountinfo", root);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (getline(&line, &cap, f) > 0)
		note_mount(a, line);
	complete = feof(f) || ferror(f);
	free(line);
	fclose(f);
	return !complete ? -ENOMEM : a->levels ? 0 : -ENOENT;
}

static bool has_process(const char *dir, pid_t pid)
{
	char path[2 * CGROUP_MAX], line[32];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f))
		found = strtol(line, NULL, 10) == pid;
	if (f)
		fclose(f);
	return found;
}

/* Copies the first `levels` parts of a path: "/a/b" of "/a/b/c" and 2. */
static int copy_parts(char *out, const char *path, int levels)
{
	const char *end = path;

	for (int i = 0; *end == '/' && i < levels; i++)
		end += 1 + strcspn(end + 1, "/");
	if (end - path >= CGROUP_MAX)
		return -ENOENT;
	memcpy(out, path, (size_t)(end - path));
	out[end - path] = '\0';
	return 0;
}

int cgroup_namespace_find(const char *root, pid_t self, char *out, size_t *rank)
{
	struct above a = {0};
	char *roots[] = {a.point, NULL};
	FTSENT *e;
	FTS *tree;
	int r = find_mount(root, &a);

	*out = '\0';
	if (r)
		return r;
	tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_NOSTAT, NULL);
	if (!tree)
		return -ENOMEM;
	r = -ENOENT;
	while (r == -ENOENT && (e = fts_read(tree)))
		if (e->fts_info == FTS_D && e->fts_level >= a.levels &&
		    has_process(e->fts_path, self))
			r = copy_parts(out, e->fts_path + strlen(a.point), a.levels);
	fts_close(tree);
	*rank = a.rank;
	return r;
}

void cgroup_namespace_resolve(const char *base, char *path)
{
	size_t keep = strlen(base), rest;
	const char *p = path;

	if (!*base)
		return;
	for (; !strncmp(p, "/..", 3) && (p[3] == '/' || !p[3]); p += 3) {
		if (!keep)
			return; /* above the mount's root */
		while (base[--keep] != '/')
			;
	}
	if (!strcmp(p, "/"))
		p++;
	rest = strlen(p);
	if (keep + rest >= CGROUP_MAX)
		return;
	memmove(path + keep, p, rest + 1);
	memcpy(path, base, keep);
	if (!*path)
		strcpy(path, "/");
}

int cgroup_namespace_open(struct cgroup_namespace *n)
{
	n->rank = CGROUP_NO_RANK;
	return cgroup_namespace_find("", getpid(), n->base, &n->rank) == -ENOMEM ? -ENOMEM : 0;
}

int cgroup_namespace_of(const struct cgroup_namespace *n, pid_t pid, char *path)
{
	size_t rank;
	int r = cgroup_of("", pid, path, &rank);

	if (r)
		return r;
	if (rank == n->rank || rank == CGROUP_NO_RANK)
		cgroup_namespace_resolve(n->base, path);
	return !strcmp(path, "/") && procfs_is_exiting(pid) ? -ESRCH : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "mounts.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The same order in which the core chooses a process's path. */
static const char *const controllers[] = {"pids", "memory", "cpu", "cpuacct", "devices", "freezer"};
#define CONTROLLERS (sizeof(controllers) / sizeof(controllers[0]))

/* The best mount of a hierarchy so far. */
struct place {
	struct tree tree;
	bool found;
	bool above; /* it is mounted from above our cgroup namespace */
};

struct found {
	struct place unified, named, other;
	size_t rank; /* of other; CONTROLLERS: none */
};

static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = list; (p = strstr(p, word)); p += n)
		if ((p == list || p[-1] == ',') && (!p[n] || p[n] == ',' || p[n] == '\n'))
			return true;
	return false;
}

/* mountinfo escapes blanks and some other characters, as \040. */
static void unescape(char *out, size_t cap, const char *p)
{
	size_t to = 0;

	for (; *p && to + 1 < cap; p++) {
		if (*p == '\\' && p[1] >= '0' && p[1] <= '3' && p[2] >= '0' && p[3] >= '0') {
			out[to++] = (char)((p[1] - '0') << 6 | (p[2] - '0') << 3 | (p[3] - '0'));
			p += 3;
		} else {
			out[to++] = *p;
		}
	}
	out[to] = '\0';
}

/* "/../..": mounted from above this process's cgroup namespace, so that it also contains the groups
 * of other containers. Paths are relative to the root of this mount, as the core's paths of
 * processes are. */
static bool is_above(const char *root)
{
	bool above = !strncmp(root, "/..", 3);

	while (!strncmp(root, "/..", 3))
		root += 3;
	return above && !*root;
}

static void set(struct place *p, const char *root, const char *point)
{
	bool above = is_above(root);

	if (p->found && (p->above || !above))
		return;
	*p = (struct place){.found = true, .above = above};
	unescape(p->tree.point, sizeof(p->tree.point), point);
	unescape(p->tree.root, sizeof(p->tree.root), above || !strcmp(root, "/") ? "" : root);
}

static void note(struct found *f, const char *root, const char *point, bool v2, const char *options)
{
	if (v2) {
		set(&f->unified, root, point);
		return;
	}
	if (has_word(options, "name=systemd"))
		set(&f->named, root, point);
	for (size_t i = 0; i < CONTROLLERS && i <= f->rank; i++)
		if (has_word(options, controllers[i])) {
			f->other.found &= i == f->rank;
			f->rank = i;
			set(&f->other, root, point);
		}
}

/* "36 35 98:0 ROOT POINT rw,.. shared:1 - cgroup2 cgroup2 rw,OPTIONS" */
static void parse(struct found *f, char *line)
{
	char *rest = line, *fields[5], *type, *options;
	char *dash = strstr(line, " - ");

	for (int i = 0; i < 5; i++)
		if (!(fields[i] = strsep(&rest, " ")))
			return;
	if (!dash || !rest || dash < rest - 1)
		return;
	rest = dash + 3;
	type = strsep(&rest, " ");
	if (!rest || (strcmp(type, "cgroup") && strcmp(type, "cgroup2")))
		return;
	strsep(&rest, " ");
	options = rest ? rest : "";
	note(f, fields[3], fields[4], !strcmp(type, "cgroup2"), options);
}

static int from_mountinfo(struct found *f)
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t cap = 0;
	bool complete;

	if (!mounts)
		return errno == ENOMEM ? -ENOMEM : 0;
	while (getline(&line, &cap, mounts) > 0)
		parse(f, line);
	complete = feof(mounts) || ferror(mounts);
	free(line);
	fclose(mounts);
	return complete ? 0 : -ENOMEM;
}

static bool is_unified(const char *dir)
{
	char path[4200];

	snprintf(path, sizeof(path), "%.4000s/cgroup.controllers", dir);
	return !access(path, F_OK);
}

static bool is_dir(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static void from_folder(struct found *f, const char *dir)
{
	char path[4200];

	if (is_unified(dir)) {
		note(f, "/", dir, true, "");
		return;
	}
	snprintf(path, sizeof(path), "%.4000s/unified", dir);
	if (is_unified(path))
		note(f, "/", path, true, "");
	snprintf(path, sizeof(path), "%.4000s/systemd", dir);
	if (is_dir(path))
		note(f, "/", path, false, "name=systemd");
	for (size_t i = 0; i < CONTROLLERS; i++) {
		snprintf(path, sizeof(path), "%.4000s/%s", dir, controllers[i]);
		if (is_dir(path))
			note(f, "/", path, false, controllers[i]);
	}
}

int mounts_find(const char *instead, struct tree trees[MAX_TREES], uint32_t *ret)
{
	struct found f = {.rank = CONTROLLERS};
	uint32_t n = 0;
	int r = 0;

	if (*instead)
		from_folder(&f, instead);
	else
		r = from_mountinfo(&f);
	if (f.unified.found)
		trees[n++] = f.unified.tree;
	if (f.named.found)
		trees[n++] = f.named.tree;
	if (f.other.found)
		trees[n++] = f.other.tree;
	*ret = n;
	return r;
}

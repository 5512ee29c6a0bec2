/* SPDX-License-Identifier: Apache-2.0 */
/* Formats: cgroups(7), proc_pid_cgroup(5), proc_pid_mountinfo(5). */
#include "process/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"

#define MAX_FILE (256u << 10)

/* Which hierarchy's path says most, from the first. v2 has no controllers in its line; where v1's
 * are in use beside it, runtimes put containers there and leave v2 at their own service. */
static const char *const order[] = {"name=systemd", "",        "pids",    "memory",
				    "cpu",          "cpuacct", "devices", "freezer"};
#define KNOWN (sizeof(order) / sizeof(order[0]))

static bool lists(const char *controllers, size_t len, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = controllers, *end = controllers + len; p <= end;) {
		const char *comma = memchr(p, ',', (size_t)(end - p));
		size_t word = (size_t)((comma ? comma : end) - p);

		if (word == n && !memcmp(p, name, n))
			return true;
		if (!comma)
			break;
		p = comma + 1;
	}
	return false;
}

static size_t rank_of(const char *controllers, size_t len)
{
	for (size_t i = 0; i < KNOWN; i++)
		if (*order[i] ? lists(controllers, len, order[i]) : !len)
			return i;
	return KNOWN;
}

/* "4:cpu,cpuacct:/a/b" */
int cgroup_parse(const char *text, char *out)
{
	size_t best = KNOWN + 1;

	strcpy(out, "/");
	while (*text) {
		size_t line = strcspn(text, "\n"), rank;
		const char *end = text + line, *controllers = memchr(text, ':', line), *path;

		path = controllers ? memchr(controllers + 1, ':', (size_t)(end - controllers - 1))
				   : NULL;
		if (!path || path[1] != '/')
			return -EBADMSG;
		path++;
		rank = rank_of(controllers + 1, (size_t)(path - 1 - (controllers + 1)));
		/* a path of its own: not the root, nor a place above our cgroup namespace's root */
		if (end - path > 1 && end - path < CGROUP_MAX && rank < best) {
			memcpy(out, path, (size_t)(end - path));
			out[end - path] = '\0';
			best = rank;
		}
		text = end + (*end == '\n');
	}
	return 0;
}

static int read_file(const char *path, struct buf *b)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY), r;

	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	r = buf_read_fd(b, fd, MAX_FILE);
	close(fd);
	if (!r)
		r = buf_add(b, "", 1);
	return r;
}

/* Nearly always one read holds it. -EFBIG: not here. */
static int parse_short(const char *path, char *out)
{
	char text[4096];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;
	int r;

	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	n = read(fd, text, sizeof(text));
	r = n < 0 ? -errno : n == sizeof(text) ? -EFBIG : 0;
	close(fd);
	if (r)
		return r;
	text[n] = '\0';
	return cgroup_parse(text, out);
}

int cgroup_of(const char *root, pid_t pid, char *out)
{
	struct buf b = {0};
	char path[4200];
	int r;

	snprintf(path, sizeof(path), "%s/proc/%d/cgroup", root, (int)pid);
	r = parse_short(path, out);
	if (r != -EFBIG)
		return r;
	r = read_file(path, &b);
	if (!r)
		r = cgroup_parse(b.p, out);
	buf_fini(&b);
	return r;
}

/* ---- from a path to its processes ---- */

struct walk {
	int (*each)(void *arg, pid_t pid);
	void *arg;
	int result;
};

static void each_in(struct walk *w, const char *dir)
{
	char path[8300], *line = NULL;
	size_t cap = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	f = fopen(path, "re");
	while (f && !w->result && getline(&line, &cap, f) > 0) {
		long pid = strtol(line, NULL, 10);

		if (pid > 0) /* 0: of another pid namespace */
			w->result = w->each(w->arg, (pid_t)pid);
	}
	free(line);
	if (f)
		fclose(f);
}

static void walk_tree(struct walk *w, char *dir)
{
	char *roots[] = {dir, NULL};
	FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_NOSTAT, NULL);
	FTSENT *e;

	while (tree && !w->result && (e = fts_read(tree)))
		if (e->fts_info == FTS_D)
			each_in(w, e->fts_path);
	if (tree)
		fts_close(tree);
}

/* Field `from` on of a mountinfo line: root, mount point; and behind " - " the type. false: not a
 * control group hierarchy. */
static bool parse_mount(char *line, char **root, char **point)
{
	char *fields[6], *rest = line, *type = strstr(line, " - ");
	int n = 0;

	if (!type || (strncmp(type + 3, "cgroup ", 7) && strncmp(type + 3, "cgroup2 ", 8)))
		return false;
	while (n < 6 && (fields[n] = strsep(&rest, " ")))
		n++;
	if (n < 6)
		return false;
	*root = fields[3];
	*point = fields[4];
	return true;
}

int cgroup_each_process(const char *path, int (*each)(void *arg, pid_t pid), void *arg)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	struct walk w = {each, arg, 0};
	char *line = NULL, *root, *point, dir[8200];
	size_t cap = 0;
	struct stat st;
	int r = -ENOENT;

	if (!f)
		return -errno;
	while (r == -ENOENT && getline(&line, &cap, f) > 0) {
		if (!parse_mount(line, &root, &point))
			continue;
		snprintf(dir, sizeof(dir), "%.4000s%s%.4000s", point, *path == '/' ? "" : "/",
			 path);
		/* the same path may be given as it stands under the mount */
		if (!strncmp(path, point, strlen(point)) && path[strlen(point)] == '/')
			snprintf(dir, sizeof(dir), "%.8000s", path);
		if (stat(dir, &st) || !S_ISDIR(st.st_mode))
			continue;
		walk_tree(&w, dir);
		r = w.result;
		if (!r)
			break;
	}
	free(line);
	fclose(f);
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Formats: cgroups(7), proc_pid_cgroup(5), proc_pid_mountinfo(5). */
#include "process/internal/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "process/procfs.h"

#define MAX_FILE (256u << 10)

/* Hierarchies by preference; "" is v2, whose line has no controllers. Where v1 is in use beside v2,
 * runtimes put containers into v1 only. */
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

size_t cgroup_rank(const char *controllers)
{
	return rank_of(controllers, strlen(controllers));
}

/* "4:cpu,cpuacct:/a/b" */
int cgroup_parse(const char *text, char *out, size_t *rank)
{
	size_t best = CGROUP_NO_RANK;

	strcpy(out, "/");
	while (*text) {
		size_t line = strcspn(text, "\n"), at;
		const char *end = text + line, *controllers = memchr(text, ':', line), *path;

		path = controllers ? memchr(controllers + 1, ':', (size_t)(end - controllers - 1))
				   : NULL;
		if (!path || path[1] != '/')
			return -EBADMSG;
		path++;
		at = rank_of(controllers + 1, (size_t)(path - 1 - (controllers + 1)));
		/* not the root */
		if (end - path > 1 && end - path < CGROUP_MAX && at < best) {
			memcpy(out, path, (size_t)(end - path));
			out[end - path] = '\0';
			best = at;
		}
		text = end + (*end == '\n');
	}
	if (rank)
		*rank = best;
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

/* Parses a file of less than 4096 bytes without an allocation. Nearly all are so short. -EFBIG: it
 * is longer. */
static int parse_short(const char *path, char *out, size_t *rank)
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
	return cgroup_parse(text, out, rank);
}

int cgroup_of(const char *root, pid_t pid, char *out, size_t *rank)
{
	struct buf b = {0};
	char path[4200];
	int r;

	snprintf(path, sizeof(path), "%s/proc/%d/cgroup", root,
		 (int)(*root ? pid : procfs_living_thread(pid)));
	r = parse_short(path, out, rank);
	if (r != -EFBIG)
		return r;
	r = read_file(path, &b);
	if (!r)
		r = cgroup_parse(b.p, out, rank);
	buf_fini(&b);
	return r;
}

/* ---- from a path to its processes ---- */

struct each_process {
	int (*each)(void *arg, pid_t pid);
	void *arg;
	int result;
};

static void each_in(struct each_process *w, const char *dir)
{
	char path[8300], *line = NULL;
	size_t cap = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	f = fopen(path, "re");
	while (f && !w->result && getline(&line, &cap, f) > 0) {
		long pid = strtol(line, NULL, 10);

		if (pid > 0) /* 0: not in this pid namespace */
			w->result = w->each(w->arg, (pid_t)pid);
	}
	free(line);
	if (f)
		fclose(f);
}

static void walk_tree(struct each_process *w, char *dir)
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

/* The mount point of a mountinfo line. false: not a control group hierarchy. */
static bool parse_mount(char *line, char **point)
{
	char *fields[6], *rest = line, *type = strstr(line, " - ");
	int n = 0;

	if (!type || (strncmp(type + 3, "cgroup ", 7) && strncmp(type + 3, "cgroup2 ", 8)))
		return false;
	while (n < 6 && (fields[n] = strsep(&rest, " ")))
		n++;
	if (n < 6)
		return false;
	*point = fields[4];
	return true;
}

/* Joins the mount point and the path. false: they are too long. */
static bool join_path(const char *point, const char *path, char *dir)
{
	/* the path can also be given as mounted */
	bool mounted = !strncmp(path, point, strlen(point)) && path[strlen(point)] == '/';
	int n = snprintf(dir, CGROUP_MAX, "%s%s%s", mounted ? "" : point,
			 mounted || *path == '/' ? "" : "/", path);

	return n > 0 && n < CGROUP_MAX;
}

int cgroup_find(const char *path, char *dir)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char *line = NULL, *point;
	int r = -ENOENT;
	size_t cap = 0;
	struct stat st;

	if (!f)
		return -errno;
	while (r == -ENOENT && getline(&line, &cap, f) > 0)
		if (parse_mount(line, &point) && join_path(point, path, dir) && !stat(dir, &st) &&
		    S_ISDIR(st.st_mode))
			r = 0;
	free(line);
	fclose(f);
	return r;
}

int cgroup_each_process(const char *dir, int (*each)(void *arg, pid_t pid), void *arg)
{
	struct each_process w = {each, arg, 0};
	char *copy = strdup(dir);

	if (!copy)
		return -ENOMEM;
	walk_tree(&w, copy);
	free(copy);
	return w.result;
}

int cgroup_id(const char *dir, uint64_t *id)
{
	union {
		struct file_handle head;
		char bytes[sizeof(struct file_handle) + sizeof(*id)];
	} h = {.head.handle_bytes = sizeof(*id)};
	struct statfs fs;
	int mount;

	if (statfs(dir, &fs))
		return -errno;
	if (fs.f_type != CGROUP2_SUPER_MAGIC)
		return -ENOTSUP;
	if (name_to_handle_at(AT_FDCWD, dir, &h.head, &mount, 0))
		return -errno;
	memcpy(id, h.head.f_handle, sizeof(*id));
	return 0;
}

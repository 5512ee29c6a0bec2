// SPDX-License-Identifier: Apache-2.0
/* The folder of debug files: BUILDID/debuginfo, as libdebuginfod lays it out. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "fetcher/internal/protocol.h"

#define PART "debuginfo." /* begins the name of a transfer's file; six random characters follow */
#define PART_S 7200       /* no transfer takes so long */
#define MOST_FOLDERS 4096u

struct kept {
	char id[2 * FETCHER_ID_MAX + 1];
	int64_t used; /* seconds */
	uint64_t bytes;
};

static int by_use(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;

	return x->used < y->used ? -1 : x->used > y->used;
}

static bool is_id(const char *name)
{
	size_t n = strlen(name);

	return n >= 4 && n <= 2 * FETCHER_ID_MAX && strspn(name, "0123456789abcdef") == n;
}

/* Removes files of the transfers of processes that were killed. */
static void remove_parts(int folder, time_t now)
{
	int fd = dup(folder);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	struct stat st;

	if (!d && fd >= 0)
		close(fd);
	while (d && (e = readdir(d)))
		if (!strncmp(e->d_name, PART, strlen(PART)) &&
		    !fstatat(folder, e->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
		    now - st.st_mtime > PART_S)
			unlinkat(folder, e->d_name, 0);
	if (d)
		closedir(d);
}

/* true: it has a debug file. */
static bool look_into(int root, const char *id, struct kept *k)
{
	int folder = openat(root, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	time_t now = time(NULL);
	bool there, is_old;
	struct stat st;

	if (folder < 0)
		return false;
	/* read before parts are removed: a transfer that begins now has a folder but no file yet */
	is_old = !fstat(folder, &st) && now - st.st_mtime > PART_S;
	remove_parts(folder, now);
	there = !fstatat(folder, "debuginfo", &st, AT_SYMLINK_NOFOLLOW);
	close(folder);
	if (!there && is_old) /* fails if it is not empty */
		unlinkat(root, id, AT_REMOVEDIR);
	if (!there)
		return false;
	strcpy(k->id, id);
	k->used = st.st_atime > st.st_mtime ? st.st_atime : st.st_mtime;
	k->bytes = (uint64_t)st.st_blocks * 512;
	return true;
}

static uint32_t list(int root, struct kept *all)
{
	int fd = dup(root);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	uint32_t n = 0;

	if (!d && fd >= 0)
		close(fd);
	while (d && n < MOST_FOLDERS && (e = readdir(d)))
		if (is_id(e->d_name))
			n += look_into(root, e->d_name, &all[n]);
	if (d)
		closedir(d);
	return n;
}

static void remove_file(int root, const char *id)
{
	int folder = openat(root, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (folder < 0)
		return;
	unlinkat(folder, "debuginfo", 0);
	close(folder);
	unlinkat(root, id, AT_REMOVEDIR);
}

uint64_t fetcher_tidy(const struct fetcher_request_message *q)
{
	int root = open(q->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct kept *all = root < 0 ? NULL : calloc(MOST_FOLDERS, sizeof(*all));
	uint64_t bytes = 0, most = q->max_bytes;
	struct statvfs fs;
	uint32_t n = 0;

	if (all)
		n = list(root, all);
	for (uint32_t i = 0; i < n; i++)
		bytes += all[i].bytes;
	if (n)
		qsort(all, n, sizeof(*all), by_use);
	for (uint32_t i = 0;
	     i < n && (bytes > q->folder_bytes - q->max_bytes || n - i > MOST_FOLDERS / 2); i++) {
		remove_file(root, all[i].id);
		bytes -= all[i].bytes;
	}
	if (root >= 0 && !fstatvfs(root, &fs) && (uint64_t)fs.f_bavail * fs.f_frsize / 2 < most)
		most = (uint64_t)fs.f_bavail * fs.f_frsize / 2;
	free(all);
	if (root >= 0)
		close(root);
	return most;
}

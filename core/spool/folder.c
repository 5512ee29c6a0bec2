// SPDX-License-Identifier: Apache-2.0
#include "spool/internal/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* A path that is being entered; `at` is its open folder. */
struct walk {
	const char *path;
	int at;
	char **text;
};

static int fail(const struct walk *w, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int fail(const struct walk *w, int err, const char *format, ...)
{
	char why[256];
	va_list ap;

	va_start(ap, format);
	vsnprintf(why, sizeof(why), format, ap);
	va_end(ap);
	if (asprintf(w->text, "the spool %s cannot be used: %s", w->path, why) < 0)
		*w->text = NULL;
	return err;
}

/* last: the spool's own folder, to which no other user may write, even if fusee does not run as
 * root. */
static int judge(const struct walk *w, const char *name, const struct stat *st, bool last)
{
	uid_t user = geteuid();
	bool sticky = st->st_mode & S_ISVTX && !last;

	if (!S_ISDIR(st->st_mode))
		return fail(w, -ENOTDIR, "'%s' is %s", name,
			    S_ISLNK(st->st_mode) ? "a symbolic link" : "no folder");
	if (user && !last)
		return 0;
	if (st->st_uid != user && (last || st->st_uid))
		return fail(w, -EPERM, "'%s' belongs to another user", name);
	if (st->st_mode & 022 && !sticky)
		return fail(w, -EPERM, "other users can write to '%s'", name);
	return 0;
}

/* Enters a folder in the open folder, and creates it if it is missing. */
static int enter(struct walk *w, const char *name, bool last)
{
	/* the folders above need not be readable */
	const int flags = (last ? O_RDONLY : O_PATH) | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(w->at, name, flags), r;
	struct stat st;

	if (fd < 0 && errno == ENOENT) {
		if (mkdirat(w->at, name, last ? 0700 : 0755) && errno != EEXIST)
			return fail(w, -errno, "'%s' cannot be made: %s", name, strerror(errno));
		fd = openat(w->at, name, flags);
	}
	if (fd < 0) {
		int err = errno;

		if (!fstatat(w->at, name, &st, AT_SYMLINK_NOFOLLOW) && !S_ISDIR(st.st_mode))
			return judge(w, name, &st, last);
		return fail(w, -err, "'%s': %s", name, strerror(err));
	}
	close(w->at);
	w->at = fd;
	r = fstat(fd, &st) ? fail(w, -errno, "'%s': %s", name, strerror(errno)) : 0;
	return r ? r : judge(w, name, &st, last);
}

static int enter_all(struct walk *w, char *path)
{
	char *rest = path;
	int r = 0;

	for (char *name; !r && (name = strsep(&rest, "/"));) {
		if (!strcmp(name, ".."))
			return fail(w, -EINVAL, "'..' is not followed");
		if (*name && strcmp(name, "."))
			r = enter(w, name, false);
	}
	return r;
}

int spool_folder_open(const char *dir, const char *name, int *fd, char **text)
{
	struct walk w = {.path = dir, .text = text};
	char *path = strdup(dir);
	int r;

	*text = NULL;
	w.at = path ? open(*dir == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	if (w.at < 0) {
		free(path);
		return path ? fail(&w, -errno, "%s", strerror(errno)) : -ENOMEM;
	}
	r = enter_all(&w, path);
	free(path);
	if (!r)
		r = enter(&w, name, true);
	if (!r && flock(w.at, LOCK_EX | LOCK_NB))
		r = fail(&w, -errno, "%s",
			 errno == EWOULDBLOCK ? "another agent has it" : strerror(errno));
	if (r)
		close(w.at);
	else
		*fd = w.at;
	return r;
}

void spool_segment_name(char name[32], uint64_t number)
{
	snprintf(name, 32, "%016" PRIx64 ".segment", number);
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

int spool_folder_segments(int dir, struct buf *numbers)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (!d) {
		r = -errno;
		if (fd >= 0)
			close(fd);
		return r;
	}
	while (!r && (errno = 0, e = readdir(d))) {
		uint64_t number = strtoull(e->d_name, NULL, 16);
		char name[32];

		spool_segment_name(name, number);
		if (!strcmp(name, e->d_name) && number < UINT64_MAX)
			r = buf_add(numbers, &number, sizeof(number));
	}
	if (!r && !e)
		r = -errno; /* of readdir(); 0 at the end of the folder */
	closedir(d);
	if (numbers->len)
		qsort(numbers->p, numbers->len / sizeof(uint64_t), sizeof(uint64_t), by_number);
	return r;
}

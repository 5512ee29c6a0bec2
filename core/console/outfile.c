/* SPDX-License-Identifier: Apache-2.0 */
#include "console/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

#define TEMP_NAMES 100
#define LEAST_ROOM (1 << 20)     /* bytes; a usual profile is smaller */
#define WAIT_NS (100L * 1000000) /* between two attempts to open a pipe */

int outfile_descriptor(const char *path)
{
	static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
	char *end;
	long n;

	if (!strcmp(path, "-") || !strcmp(path, "/dev/stdout"))
		return STDOUT_FILENO;
	if (!strcmp(path, "/dev/stderr"))
		return STDERR_FILENO;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		size_t len = strlen(folders[i]);

		if (strncmp(path, folders[i], len))
			continue;
		n = strtol(path + len, &end, 10);
		return end != path + len && !*end && n >= 0 && n < 1 << 20 ? (int)n : -1;
	}
	return -1;
}

/* The folder of a path, which the caller frees. NULL: no memory. */
static char *folder_of(const char *path)
{
	char *copy = strdup(path), *dir = copy ? strdup(dirname(copy)) : NULL;

	free(copy);
	return dir;
}

/* Advice after an error, or "". The caller frees it. */
static char *advice(const char *path, int err)
{
	char *dir = folder_of(path), *text = NULL;
	unsigned int user = geteuid();
	int n = 0;

	if (err == ENOENT && dir)
		n = asprintf(&text, ": mkdir -p %s makes the folder", dir);
	else if (err == EACCES && dir && getuid() != user)
		n = asprintf(&text,
			     ": under sudo files are written as user %u, who may not write to %s",
			     user, dir);
	else if ((err == EACCES || err == EROFS) && dir)
		n = asprintf(&text, ": name a file in a folder that user %u may write to", user);
	else if (err == EPERM)
		n = asprintf(&text, ": the file belongs to another user, and its folder lets only "
				    "owners replace files");
	else if (err == ENOSPC || err == EDQUOT)
		n = asprintf(&text, ": free 1 MiB at least, or name a file on another disk");
	free(dir);
	return n > 0 ? text : strdup("");
}

static int fail(char **error, const char *path, int r)
{
	char *more = advice(path, -r);

	if (asprintf(error, "cannot write '%s': %s%s", path, strerror(-r), more ? more : "") < 0)
		*error = NULL;
	free(more);
	return r;
}

/* Creates a file beside `path`, with the mode of the umask. An existing file is not opened: the
 * owner of the folder could have put a link there. *temp: its name. A descriptor or -errno. */
static int open_beside(const char *path, char **temp)
{
	int fd = -EEXIST;

	for (int i = 0; fd == -EEXIST && i < TEMP_NAMES; i++) {
		free(*temp);
		*temp = NULL;
		if (asprintf(temp, "%s.%d-%d.tmp", path, (int)getpid(), i) < 0) {
			*temp = NULL;
			return -ENOMEM;
		}
		fd = open(*temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
		if (fd < 0)
			fd = -errno;
	}
	return fd;
}

static char *old_name(const char *path)
{
	char *old;

	return asprintf(&old, "%s.old", path) < 0 ? NULL : old;
}

/* ---- before the work ---- */

/* In a folder such as /tmp, only the owner of a file may rename it. */
static int try_rename(const char *path)
{
	char *dir = folder_of(path), *old = old_name(path);
	struct stat file, folder;
	uid_t user = geteuid();
	int r = dir && old ? 0 : -ENOMEM;

	if (!r && !lstat(path, &file) && !stat(dir, &folder) && folder.st_mode & S_ISVTX && user &&
	    file.st_uid != user && folder.st_uid != user)
		r = -EPERM;
	if (!r && !lstat(old, &file) && S_ISDIR(file.st_mode))
		r = -EISDIR;
	free(dir);
	free(old);
	return r;
}

static int try_replace(const char *path)
{
	char *temp = NULL;
	int fd = open_beside(path, &temp), r = fd < 0 ? fd : 0;

	if (!r) {
		r = -posix_fallocate(fd, 0, LEAST_ROOM);
		if (r == -EOPNOTSUPP || r == -EINVAL) /* this file system cannot tell */
			r = 0;
		close(fd);
		unlink(temp);
	}
	free(temp);
	return r ? r : try_rename(path);
}

int outfile_try(const char *path, char **error)
{
	int fd = outfile_descriptor(path), r = 0;
	struct stat st;
	char *real;

	if (fd >= 0) {
		int flags = fcntl(fd, F_GETFL);

		r = flags < 0 ? -errno : (flags & O_ACCMODE) == O_RDONLY ? -EBADF : 0;
		return r ? fail(error, path, r) : 0;
	}
	if (!stat(path, &st) && !S_ISREG(st.st_mode)) {
		if (S_ISDIR(st.st_mode))
			r = -EISDIR;
		else if (S_ISSOCK(st.st_mode))
			r = -ENXIO;
		else if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS))
			r = -errno;
		return r ? fail(error, path, r) : 0;
	}
	real = realpath(path, NULL); /* the target of a link */
	r = try_replace(real ? real : path);
	free(real);
	return r ? fail(error, path, r) : 0;
}

/* ---- writing ---- */

static int write_and_close(const struct buf *b, int fd)
{
	int r = buf_write(b, fd);

	if (close(fd) && !r)
		r = -errno;
	return r;
}

/* Renames an existing file to PATH.old, and *temp to PATH. */
static int swap(const char *temp, const char *path)
{
	char *old = old_name(path);
	int r = old ? 0 : -ENOMEM;
	bool kept = false;

	if (!r) {
		kept = !rename(path, old);
		if (!kept && errno != ENOENT)
			r = -errno;
	}
	if (!r && rename(temp, path)) {
		r = -errno;
		if (kept)
			(void)!rename(old, path);
	}
	free(old);
	return r;
}

static int replace(const struct buf *b, const char *path)
{
	char *temp = NULL;
	int fd = open_beside(path, &temp), r = fd < 0 ? fd : write_and_close(b, fd);

	if (!r)
		r = swap(temp, path);
	if (r && fd >= 0)
		unlink(temp);
	free(temp);
	return r;
}

/* A recording blocks these signals, so a wait must poll for them. */
static bool interrupted(void)
{
	const struct timespec wait = {0, WAIT_NS};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	return sigtimedwait(&set, NULL, &wait) > 0;
}

/* Writes to a device or a pipe. */
static int write_in_place(const struct buf *b, const char *path)
{
	bool waits = false;
	int fd;

	while ((fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0) {
		if (errno != ENXIO)
			return -errno;
		if (!waits)
			log_info("waiting for a program that reads '%s'", path);
		waits = true;
		if (interrupted())
			return -EINTR;
	}
	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK)) {
		int r = -errno;

		close(fd);
		return r;
	}
	return write_and_close(b, fd);
}

int outfile_write(const struct buf *b, const char *path, char **error)
{
	int fd = outfile_descriptor(path), r;
	struct stat st;
	char *real;

	if (fd >= 0) {
		r = buf_write(b, fd);
	} else if (!stat(path, &st) && !S_ISREG(st.st_mode)) {
		r = write_in_place(b, path);
	} else {
		real = realpath(path, NULL);
		r = replace(b, real ? real : path);
		free(real);
	}
	return r ? fail(error, path, r) : 0;
}

/* ---- when that failed ---- */

int outfile_save(const struct buf *b, const char *suffix, char **path)
{
	const char *folders[] = {getenv("TMPDIR"), "/tmp", "/var/tmp"};
	int r = -ENOENT;

	for (size_t i = 0; r && i < sizeof(folders) / sizeof(folders[0]); i++) {
		int fd;

		*path = NULL;
		if (!folders[i] || *folders[i] != '/')
			continue;
		if (asprintf(path, "%s/fusee-XXXXXX%s", folders[i], suffix) < 0) {
			*path = NULL;
			return -ENOMEM;
		}
		fd = mkostemps(*path, (int)strlen(suffix), O_CLOEXEC);
		r = fd < 0 ? -errno : write_and_close(b, fd);
		if (r && fd >= 0)
			unlink(*path);
		if (r)
			free(*path);
	}
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles as files. A file is written under a temporary name, synced and renamed, so that a reader
 * never sees an incomplete file. Other users may be able to write into the directory: no link in it
 * is followed, and only files with the form of this sink's own names are removed.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fusee/helpers.h>

#include "name.h"
#include "retention.h"

struct pprof {
	struct fusee_self self;
	const char *dir, *mode;
	uint64_t keep, max_size;
	mode_t file_mode, dir_mode;
	struct retention retention;
};

static const struct fusee_option options[] = {
	FUSEE_OPTION_STRING(struct pprof, dir, NULL,
			    "Directory of the files; it is created if it is missing."),
	FUSEE_OPTION_DURATION(struct pprof, keep, "7d", 0, 0,
			      "Files whose window began longer ago are removed; 0 keeps them for "
			      "ever."),
	FUSEE_OPTION_SIZE(
		struct pprof, max_size, "1GiB", 0, 0,
		"Most bytes of all files together: the oldest are removed to make room; 0 "
		"sets no limit."),
	FUSEE_OPTION_STRING(struct pprof, mode, "0640",
			    "Permissions of the files, octal; a directory that is created can be "
			    "entered by everyone who can read the files."),
};

/* ---- the directory ---- */

/* Creates the directory and its missing parents. 0 or -errno. */
static int make_dir(const char *path, mode_t mode)
{
	char *copy = strdup(path), *at;
	int r = 0;

	if (!copy)
		return -ENOMEM;
	for (at = copy + 1; !r && (at = strchr(at, '/')); at++) {
		*at = '\0';
		if (mkdir(copy, 0755) && errno != EEXIST)
			r = -errno;
		*at = '/';
	}
	if (!r && mkdir(copy, mode) && errno != EEXIST)
		r = -errno;
	free(copy);
	return r;
}

/* Opens the directory, and creates it if it is missing. It is opened for each file, since another
 * file system may have been mounted over it. A descriptor, or -errno after host->fail(). */
static int open_dir(struct pprof *s)
{
	int fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;

	if (fd >= 0)
		return fd;
	if (errno != ENOENT)
		return fusee_fail(&s->self, -errno, "cannot open directory '%s': %s", s->dir,
				  strerror(errno));
	r = make_dir(s->dir, s->dir_mode);
	if (r)
		return fusee_fail(
			&s->self, r,
			"cannot create directory '%s': %s; create it, or name another as 'dir'",
			s->dir, strerror(-r));
	fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return fusee_fail(&s->self, -errno, "cannot open directory '%s': %s", s->dir,
				  strerror(errno));
	return fd;
}

/* ---- one file ---- */

static int write_all(int fd, struct fusee_str bytes)
{
	while (bytes.len) {
		ssize_t n = write(fd, bytes.p, bytes.len < 1 << 30 ? bytes.len : 1 << 30);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		bytes.p += n;
		bytes.len -= (uint64_t)n;
	}
	return 0;
}

/* Creates a file of this name and locks it: retention.c removes unfinished files without a lock. A
 * descriptor or -errno. */
static int create(struct pprof *s, int dir, const char *part)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(dir, part, flags, 0600), r;

	if (fd < 0 && errno == EEXIST && !unlinkat(dir, part, 0))
		fd = openat(dir, part, flags, 0600);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) || fchmod(fd, s->file_mode)) {
		r = -errno;
		unlinkat(dir, part, 0);
		close(fd);
		return r;
	}
	return fd;
}

static int write_file(struct pprof *s, int dir, const char *name, struct fusee_str bytes)
{
	char part[NAME_SIZE];
	int fd, r;

	name_make_unfinished(part, name);
	fd = create(s, dir, part);
	if (fd < 0)
		return fd;
	r = write_all(fd, bytes);
	if (!r && fsync(fd))
		r = -errno;
	if (!r && renameat(dir, part, dir, name))
		r = -errno;
	if (r)
		unlinkat(dir, part, 0);
	/* a file system that cannot sync directories says EINVAL */
	else if (fsync(dir) && errno != EINVAL)
		r = -errno;
	if (close(fd) && !r)
		r = -errno;
	return r;
}

static const char *reason_of(int err)
{
	switch (err) {
	case -ENOSPC:
		return "no space";
	case -EDQUOT:
		return "quota";
	case -EIO:
		return "i/o error";
	case -EROFS:
		return "read-only";
	case -EACCES:
	case -EPERM:
		return "permission";
	case -EFBIG:
		return "max_size";
	default:
		return "other";
	}
}

static void count_lost(struct pprof *s, int err)
{
	fusee_count_by(&s->self, "windows_lost", "reason", reason_of(err), 1);
}

static int fail_lost(struct pprof *s, int err, const char *name)
{
	count_lost(s, err);
	return fusee_fail(&s->self, err == -EAGAIN ? -EIO : err, "cannot write '%s/%s': %s", s->dir,
			  name, strerror(-err));
}

static void count_removed(struct pprof *s, const struct retention *before)
{
	fusee_count_by(&s->self, "files_removed", "reason", "keep",
		       s->retention.too_old - before->too_old);
	fusee_count_by(&s->self, "files_removed", "reason", "max_size",
		       s->retention.too_many - before->too_many);
}

/* Writes one file, after removing old files: that must happen also when the disk is full. */
static int store(struct pprof *s, int dir, const char *name, struct fusee_str bytes)
{
	struct retention before = s->retention;
	int r;

	if (s->max_size && bytes.len > s->max_size) {
		count_lost(s, -EFBIG);
		return fusee_fail(&s->self, -EFBIG,
				  "a profile of %llu bytes is more than 'max_size' allows",
				  (unsigned long long)bytes.len);
	}
	r = retention_make_room(&s->retention, dir, bytes.len);
	count_removed(s, &before);
	if (!r)
		r = write_file(s, dir, name, bytes);
	if (r)
		return fail_lost(s, r, name);
	s->retention.bytes += bytes.len;
	fusee_count(&s->self, "bytes_written", bytes.len);
	return 0;
}

static int consume(void *ctx, const struct fusee_delivery *d)
{
	struct pprof *s = ctx;
	struct fusee_str bytes;
	char name[NAME_SIZE];
	int dir, r = s->self.host->sink->encode(d->out, d->profile, FUSEE_PPROF_GZ, &bytes);

	if (r)
		return fusee_fail(&s->self, r, "cannot encode a profile: %s", strerror(-r));
	name_make(name, d->profile);
	dir = open_dir(s);
	if (dir < 0) {
		count_lost(s, dir);
		return dir == -EAGAIN ? -EIO : dir;
	}
	r = store(s, dir, name, bytes);
	close(dir);
	return r;
}

static int init(void *ctx, struct fusee_instance *in, const struct fusee_host *host)
{
	struct pprof *s = ctx;
	struct retention before;
	char *end;
	int dir, r;

	fusee_self_init(ctx, in, host);
	s->file_mode = (mode_t)strtoul(s->mode, &end, 8);
	if (end == s->mode || *end || s->file_mode & ~0666u || (s->file_mode & 0600) != 0600)
		return fusee_fail(&s->self, -EINVAL,
				  "option 'mode': '%s' is not an octal number from 0600 to 0666, "
				  "such as 0640",
				  s->mode);
	if (!*s->dir)
		return fusee_fail(&s->self, -EINVAL, "option 'dir' is empty");
	s->dir_mode = 0700 | (s->file_mode & 0044) | (s->file_mode & 0044) >> 2;
	s->retention = (struct retention){.keep_ns = s->keep, .max_size = s->max_size};
	dir = open_dir(s);
	if (dir < 0)
		return dir;
	r = faccessat(dir, ".", W_OK | X_OK, AT_EACCESS) ? -errno : 0;
	if (r) {
		fusee_fail(&s->self, r, "cannot write into directory '%s': %s", s->dir,
			   strerror(-r));
		goto out;
	}
	before = s->retention;
	r = retention_scan(&s->retention, dir, 0);
	count_removed(s, &before);
	if (r)
		fusee_fail(&s->self, r, "cannot read directory '%s': %s", s->dir, strerror(-r));
out:
	close(dir);
	return r;
}

static const struct fusee_sink_ops ops = {.size = sizeof(ops), .consume = consume};

FUSEE_PLUGIN(pprof, FUSEE_SINK, .version = "0.1",
	     .doc = "Writes profiles as pprof files into a directory.",
	     .options = FUSEE_TABLE(options), .ctx_size = sizeof(struct pprof), .init = init,
	     .ops = &ops);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles as files. A file is there whole or not at all: it is written under another name, synced
 * and renamed. The directory may be one that others write into: nothing in it is followed, and
 * nothing is removed but what has the shape of our own names.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fusee/plugin.h>

#include "name.h"
#include "retention.h"

struct pprof {
	const char *dir, *mode;
	uint64_t keep, max_size;
	struct fusee_instance *in;
	const struct fusee_host *host;
	mode_t file_mode, dir_mode;
	struct retention retention;
};

static const struct fusee_option options[] = {
	{.name = "dir",
	 .type = FUSEE_STRING,
	 .offset = offsetof(struct pprof, dir),
	 .doc = "Directory that the files go into; made if it is missing."},
	{.name = "keep",
	 .type = FUSEE_DURATION,
	 .offset = offsetof(struct pprof, keep),
	 .def = "7d",
	 .doc = "Files whose window began longer ago are removed; 0 keeps them for ever."},
	{.name = "max_size",
	 .type = FUSEE_SIZE,
	 .offset = offsetof(struct pprof, max_size),
	 .def = "1GiB",
	 .doc = "Most bytes of all files together, the oldest make room; 0 sets no limit."},
	{.name = "mode",
	 .type = FUSEE_STRING,
	 .offset = offsetof(struct pprof, mode),
	 .def = "0640",
	 .doc = "Permissions of the files, octal; a directory that is made can be entered by those "
		"who may read."},
};

__attribute__((format(printf, 3, 4))) static int fail(struct pprof *s, int err, const char *format,
						      ...)
{
	char text[PATH_MAX + 512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	return s->host->fail(s->in, err, text);
}

static void count(struct pprof *s, const char *metric, const char *reason, uint64_t n)
{
	struct fusee_label l = {.key = {"reason", 6}, .str = {reason, reason ? strlen(reason) : 0}};

	if (n)
		s->host->count(s->in, metric, &l, reason ? 1 : 0, n);
}

/* ---- the directory ---- */

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

/* The directory, opened anew for each file: it may be another one by now, mounted over it. */
static int open_dir(struct pprof *s)
{
	int fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;

	if (fd >= 0)
		return fd;
	if (errno != ENOENT)
		return fail(s, -errno, "cannot open directory '%s': %s", s->dir, strerror(errno));
	r = make_dir(s->dir, s->dir_mode);
	if (r)
		return fail(s, r,
			    "cannot make directory '%s': %s; make it, or name another as 'dir'",
			    s->dir, strerror(-r));
	fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return fail(s, -errno, "cannot open directory '%s': %s", s->dir, strerror(errno));
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

/* A new file of this name; the lock says that it is being written. */
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

	name_unfinished(part, name);
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

static int lost(struct pprof *s, int err, const char *name)
{
	count(s, "windows_lost", reason_of(err), 1);
	return fail(s, err == -EAGAIN ? -EIO : err, "cannot write '%s/%s': %s", s->dir, name,
		    strerror(-err));
}

static void count_removed(struct pprof *s, const struct retention *before)
{
	count(s, "files_removed", "keep", s->retention.too_old - before->too_old);
	count(s, "files_removed", "max_size", s->retention.too_many - before->too_many);
}

/* Room first: old files must go also when the disk is full. */
static int store(struct pprof *s, int dir, const char *name, struct fusee_str bytes)
{
	struct retention before = s->retention;
	int r;

	if (s->max_size && bytes.len > s->max_size) {
		count(s, "windows_lost", reason_of(-EFBIG), 1);
		return fail(s, -EFBIG, "a profile of %llu bytes is more than 'max_size' allows",
			    (unsigned long long)bytes.len);
	}
	r = retention_make_room(&s->retention, dir, bytes.len);
	count_removed(s, &before);
	if (!r)
		r = write_file(s, dir, name, bytes);
	if (r)
		return lost(s, r, name);
	s->retention.bytes += bytes.len;
	count(s, "bytes_written", NULL, bytes.len);
	return 0;
}

static int consume(void *ctx, const struct fusee_delivery *d)
{
	struct pprof *s = ctx;
	struct fusee_str bytes;
	char name[NAME_SIZE];
	int dir, r = s->host->sink->encode(d->out, d->profile, FUSEE_PPROF_GZ, &bytes);

	if (r)
		return fail(s, r, "cannot encode a profile: %s", strerror(-r));
	name_make(name, d->profile);
	dir = open_dir(s);
	if (dir < 0) {
		count(s, "windows_lost", reason_of(dir), 1);
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

	s->in = in;
	s->host = host;
	s->file_mode = (mode_t)strtoul(s->mode, &end, 8);
	if (end == s->mode || *end || s->file_mode & ~0666u || (s->file_mode & 0600) != 0600)
		return fail(s, -EINVAL,
			    "option 'mode': '%s' is not an octal number of 0600 to 0666: 0640",
			    s->mode);
	if (!*s->dir)
		return fail(s, -EINVAL, "option 'dir' is empty");
	s->dir_mode = 0700 | (s->file_mode & 0044) | (s->file_mode & 0044) >> 2;
	s->retention = (struct retention){.keep_ns = s->keep, .max_size = s->max_size};
	dir = open_dir(s);
	if (dir < 0)
		return dir;
	r = faccessat(dir, ".", W_OK | X_OK, AT_EACCESS) ? -errno : 0;
	if (r) {
		fail(s, r, "cannot write into directory '%s': %s", s->dir, strerror(-r));
		goto out;
	}
	before = s->retention;
	r = retention_look(&s->retention, dir, 0);
	count_removed(s, &before);
	if (r)
		fail(s, r, "cannot read directory '%s': %s", s->dir, strerror(-r));
out:
	close(dir);
	return r;
}

static const struct fusee_sink_ops ops = {.size = sizeof(ops), .consume = consume};

FUSEE_PLUGIN(pprof, FUSEE_SINK, .version = "0.1",
	     .doc = "Writes profiles as pprof files into a directory.",
	     .options = {options, sizeof(options) / sizeof(*options), sizeof(*options)},
	     .ctx_size = sizeof(struct pprof), .init = init, .ops = &ops);

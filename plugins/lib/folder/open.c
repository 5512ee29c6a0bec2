/* SPDX-License-Identifier: Apache-2.0 */
#include <fusee/folder.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* A descriptor, or -errno after host->fail(). */
static int open_or_create(const struct fusee_folder *f)
{
	int fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;

	if (fd >= 0)
		return fd;
	if (errno != ENOENT)
		return fusee_fail(f->self, -errno, "cannot open directory '%s': %s", f->dir,
				  strerror(errno));
	r = make_dir(f->dir, f->dir_mode);
	if (r)
		return fusee_fail(
			f->self, r,
			"cannot create directory '%s': %s; create it, or name another as 'dir'",
			f->dir, strerror(-r));
	fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return fusee_fail(f->self, -errno, "cannot open directory '%s': %s", f->dir,
				  strerror(errno));
	return fd;
}

static int take_mode(struct fusee_folder *f)
{
	char *end;

	f->file_mode = (uint32_t)strtoul(f->mode, &end, 8);
	if (end == f->mode || *end || f->file_mode & ~0666u || (f->file_mode & 0600) != 0600)
		return fusee_fail(f->self, -EINVAL,
				  "option 'mode': '%s' is not an octal number from 0600 to 0666, "
				  "such as 0640",
				  f->mode);
	f->dir_mode = 0700 | (f->file_mode & 0044) | (f->file_mode & 0044) >> 2;
	return 0;
}

int fusee_folder_init(struct fusee_folder *f, const struct fusee_self *self,
		      const struct fusee_folder_ops *ops)
{
	int r, dir;

	f->self = self;
	f->ops = ops;
	r = take_mode(f);
	if (r)
		return r;
	if (!*f->dir)
		return fusee_fail(f->self, -EINVAL, "option 'dir' is empty");
	f->bytes = f->next_ns = 0;
	dir = open_or_create(f);
	if (dir < 0)
		return dir;
	if (faccessat(dir, ".", W_OK | X_OK, AT_EACCESS)) {
		r = fusee_fail(f->self, -errno, "cannot write into directory '%s': %s", f->dir,
			       strerror(errno));
	} else {
		r = fusee_folder_make_room(f, dir, 0);
		if (r)
			fusee_fail(f->self, r, "cannot read directory '%s': %s", f->dir,
				   strerror(-r));
	}
	close(dir);
	return r;
}

int fusee_folder_open(struct fusee_folder *f)
{
	int dir = open_or_create(f);

	if (dir < 0)
		fusee_folder_count_lost(f, dir);
	return dir == -EAGAIN ? -EIO : dir;
}

/* ---- counts ---- */

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
	case -ENOMEM:
		return "no memory";
	default:
		return "other";
	}
}

void fusee_folder_count_lost(struct fusee_folder *f, int err)
{
	fusee_count_by(f->self, "windows_lost", "reason", reason_of(err), 1);
}

void fusee_folder_wrote(struct fusee_folder *f, uint64_t bytes)
{
	f->bytes += bytes;
	fusee_count(f->self, "bytes_written", bytes);
}

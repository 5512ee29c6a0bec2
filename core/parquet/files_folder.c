/* SPDX-License-Identifier: Apache-2.0 */
#include "parquet/files_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct folder {
	struct files files;
	int tables[2]; /* by enum files_table */
};

static int list_folder(struct files *f, struct parquet_list *list, uint64_t from_ns, uint64_t to_ns)
{
	/* listing names is cheap, and files of other times are counted as skipped */
	(void)from_ns;
	(void)to_ns;
	return parquet_list_read(list, ((struct folder *)(void *)f)->tables[FILES_SAMPLES]);
}

static int open_fd(int dir, const char *path, uint64_t *size, const char **why)
{
	/* without O_NONBLOCK, opening a named pipe would wait for a writer */
	int fd = openat(dir, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW), r;
	struct stat st;

	if (fd < 0 && errno == ELOOP) {
		*why = "it is a link";
		return -EINVAL;
	}
	if (fd < 0)
		return -errno;
	r = fstat(fd, &st) ? -errno : S_ISREG(st.st_mode) ? 0 : -EINVAL;
	if (r == -EINVAL)
		*why = "it is no regular file";
	*size = (uint64_t)st.st_size;
	if (!r)
		return fd;
	close(fd);
	return r;
}

static int open_file(struct files *f, enum files_table table, const char *path,
		     struct fusee_parquet_input *in, const char **why)
{
	int *fd = malloc(sizeof(*fd));

	if (!fd)
		return -ENOMEM;
	*fd = open_fd(((struct folder *)(void *)f)->tables[table], path, &in->size, why);
	if (*fd < 0) {
		int r = *fd;

		free(fd);
		return r;
	}
	in->read = fusee_parquet_read_fd;
	in->arg = fd;
	return 0;
}

static void shut_file(struct files *f, struct fusee_parquet_input *in)
{
	(void)f;
	close(*(int *)in->arg);
	free(in->arg);
}

static bool has_file(struct files *f, const char *path)
{
	return !faccessat(((struct folder *)(void *)f)->tables[FILES_SAMPLES], path, F_OK, 0);
}

static void close_folder(struct files *files)
{
	struct folder *f = (struct folder *)(void *)files;

	for (int i = 0; i < 2; i++)
		if (f->tables[i] >= 0)
			close(f->tables[i]);
	free(f);
}

/* A descriptor, or -errno, also for anything but a folder. */
static int open_table(int dir, const char *path)
{
	int fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd >= 0 ? fd : errno == ENOTDIR ? -ENOENT : -errno;
}

int files_folder_open(struct files **ret, const char *path)
{
	static const struct files_ops ops = {
		.list = list_folder,
		.open = open_file,
		.shut = shut_file,
		.has = has_file,
		.close = close_folder,
		.lacks = "no file in samples/date=../hour=../ ends with .parquet"};
	int dir = open_table(AT_FDCWD, path), r = dir < 0 ? dir : 0;
	struct folder *f = calloc(1, sizeof(*f));

	if (!f || r) {
		free(f);
		if (dir >= 0)
			close(dir);
		return r ? r : -ENOMEM;
	}
	f->files.ops = &ops;
	f->tables[FILES_SAMPLES] = open_table(dir, "samples");
	f->tables[FILES_STACKS] = open_table(dir, "stacks");
	close(dir);
	for (int i = 0; !r && i < 2; i++)
		r = f->tables[i] < 0 ? f->tables[i] : 0;
	if (r)
		close_folder(&f->files);
	else
		*ret = &f->files;
	return r;
}

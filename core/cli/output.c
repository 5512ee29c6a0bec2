/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "profile/pprof.h"
#include "profile/render.h"

static int as_pprof(const struct fusee_profile *p, struct buf *b)
{
	return pprof_encode(p, true, b);
}

static int as_folded(const struct fusee_profile *p, struct buf *b)
{
	return render_folded(p, &(struct render_options){0}, b);
}

static int as_html(const struct fusee_profile *p, struct buf *b)
{
	return render_flamegraph(p, NULL, &(struct render_options){0}, b);
}

static int as_speedscope(const struct fusee_profile *p, struct buf *b)
{
	return render_speedscope(p, &(struct render_options){0}, b);
}

static int as_json(const struct fusee_profile *p, struct buf *b)
{
	return render_json(p, NULL, &(struct render_options){0}, b);
}

#define TEMP_NAMES 100

static const struct format {
	const char *suffix;
	int (*render)(const struct fusee_profile *, struct buf *);
} formats[] = {
	{".pb.gz", as_pprof},
	{".pprof", as_pprof},
	{".folded", as_folded},
	{".html", as_html},
	{".speedscope.json", as_speedscope},
	{".json", as_json},
};

static const struct format *format_of(const char *path)
{
	size_t len = strlen(path);

	if (!strcmp(path, "-"))
		return &formats[0];
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		size_t n = strlen(formats[i].suffix);

		if (len >= n && !strcmp(path + len - n, formats[i].suffix))
			return &formats[i];
	}
	return NULL;
}

static int fail(char **error, const char *path, int r)
{
	if (asprintf(error, "cannot write '%s': %s", path, strerror(-r)) < 0)
		*error = NULL;
	return r;
}

int output_check(const char *path, char **error)
{
	if (format_of(path))
		return 0;
	if (asprintf(error,
		     "'%s' names no format: it should end with .pb.gz, .pprof, .folded, .html,"
		     " .speedscope.json or .json",
		     path) < 0)
		*error = NULL;
	return -EINVAL;
}

/* Devices and pipes are written in place. */
static bool in_place(const char *path)
{
	struct stat st;

	return !stat(path, &st) && !S_ISREG(st.st_mode);
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

static int write_and_close(const struct buf *b, int fd)
{
	int r = buf_write(b, fd);

	if (close(fd) && !r)
		r = -errno;
	return r;
}

static int replace(const struct buf *b, const char *path)
{
	char *temp = NULL;
	int fd = open_beside(path, &temp), r = fd < 0 ? fd : write_and_close(b, fd);

	if (!r && rename(temp, path))
		r = -errno;
	if (r && fd >= 0)
		unlink(temp);
	free(temp);
	return r;
}

static int write_file(const struct buf *b, const char *path)
{
	char *real;
	int fd, r;

	if (!strcmp(path, "-"))
		return buf_write(b, STDOUT_FILENO);
	if (in_place(path)) {
		fd = open(path, O_WRONLY | O_CLOEXEC);
		return fd < 0 ? -errno : write_and_close(b, fd);
	}
	real = realpath(path, NULL); /* the target of a link */
	r = replace(b, real ? real : path);
	free(real);
	return r;
}

int output_bytes(const struct buf *b, const char *path, char **error)
{
	int r = write_file(b, path);

	return r ? fail(error, path, r) : 0;
}

int output_write(const struct fusee_profile *p, const char *path, char **error)
{
	const struct format *f = format_of(path);
	struct buf b = {0};
	int r;

	if (!f)
		return output_check(path, error);
	r = f->render(p, &b);
	if (!r)
		r = b.error;
	if (r == -EINVAL && b.len) { /* the renderer says why */
		if (asprintf(error, "cannot write '%s': %.*s", path, (int)b.len, b.p) < 0)
			*error = NULL;
	} else {
		r = r ? fail(error, path, r) : output_bytes(&b, path, error);
	}
	buf_fini(&b);
	return r;
}

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

static const struct format {
	const char *ending;
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
		size_t n = strlen(formats[i].ending);

		if (len >= n && !strcmp(path + len - n, formats[i].ending))
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

/* Devices and pipes are written in place: there is nothing to rename. */
static bool in_place(const char *path)
{
	struct stat st;

	return !stat(path, &st) && !S_ISREG(st.st_mode);
}

static int write_file(const struct buf *b, const char *path)
{
	char *temp = NULL;
	int fd, r;

	if (!strcmp(path, "-"))
		return buf_write(b, STDOUT_FILENO);
	if (in_place(path)) {
		fd = open(path, O_WRONLY | O_CLOEXEC);
		r = fd < 0 ? -errno : buf_write(b, fd);
		if (fd >= 0 && close(fd) && !r)
			r = -errno;
		return r;
	}
	if (asprintf(&temp, "%s.%d.tmp", path, (int)getpid()) < 0)
		return -ENOMEM;
	fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	r = fd < 0 ? -errno : buf_write(b, fd);
	if (fd >= 0 && close(fd) && !r)
		r = -errno;
	if (!r && rename(temp, path))
		r = -errno;
	if (r && fd >= 0)
		unlink(temp);
	free(temp);
	return r;
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
	if (!r)
		r = write_file(&b, path);
	buf_fini(&b);
	return r ? fail(error, path, r) : 0;
}

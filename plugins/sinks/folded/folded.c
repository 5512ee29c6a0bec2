/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks as text, "root;caller;leaf weight" lines, appended to a file or written to standard
 * output. A window is written whole or, to a file, not at all; who reads a pipe may be slow, and
 * cancel() ends the wait.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fusee/plugin.h>

struct folded {
	const char *path, *root;
	uint64_t max_size;
	struct fusee_instance *in;
	const struct fusee_host *host;
	int cancelled; /* eventfd: readable for ever once cancel() was called */
	char *text;    /* a window as it is written */
	uint64_t len, cap;
};

static const struct fusee_option options[] = {
	{.name = "path",
	 .type = FUSEE_STRING,
	 .offset = offsetof(struct folded, path),
	 .doc = "File that lines are appended to, opened anew for each window; '-' is standard "
		"output."},
	{.name = "root",
	 .type = FUSEE_STRING,
	 .offset = offsetof(struct folded, root),
	 .def = "process",
	 .doc = "Label of the target whose value becomes the first frame of each stack; '' for "
		"none."},
	{.name = "max_size",
	 .type = FUSEE_SIZE,
	 .offset = offsetof(struct folded, max_size),
	 .def = "100MiB",
	 .doc = "A file that would become larger is renamed to PATH.1 first, over the one before; "
		"0 sets no limit."},
};

__attribute__((format(printf, 3, 4))) static int fail(struct folded *s, int err, const char *format,
						      ...)
{
	char text[PATH_MAX + 256];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	return s->host->fail(s->in, err, text);
}

static bool to_stdout(const struct folded *s)
{
	return !strcmp(s->path, "-");
}

/* ---- the text ---- */

static const struct fusee_label *root_of(const struct folded *s, const struct fusee_profile *p)
{
	for (uint32_t i = 0; i < p->resource.n; i++) {
		const struct fusee_label *l = FUSEE_AT(struct fusee_label, p->resource, i);

		if (l->key.len == strlen(s->root) && !memcmp(l->key.p, s->root, l->key.len))
			return l->str.len ? l : NULL;
	}
	return NULL;
}

/* ';' parts frames, a line ends a stack. */
static char plain(char c)
{
	return c == ';' ? ':' : (unsigned char)c < ' ' ? ' ' : c;
}

static int add(struct folded *s, const char *p, uint64_t len)
{
	if (len > s->cap - s->len) {
		uint64_t cap = 2 * s->cap + len;
		char *text = realloc(s->text, cap);

		if (!text)
			return -ENOMEM;
		s->text = text;
		s->cap = cap;
	}
	memcpy(s->text + s->len, p, len);
	s->len += len;
	return 0;
}

/* The lines with the root in front of each. */
static int put_lines(struct folded *s, struct fusee_str lines, const struct fusee_label *root)
{
	int r = 0;

	s->len = 0;
	while (!r && lines.len) {
		const char *end = memchr(lines.p, '\n', lines.len);
		uint64_t n = end ? (uint64_t)(end - lines.p) + 1 : lines.len;

		if (root) {
			uint64_t at = s->len;

			r = add(s, root->str.p, root->str.len);
			for (; !r && at < s->len; at++)
				s->text[at] = plain(s->text[at]);
			r = r ? r : add(s, ";", 1);
		}
		r = r ? r : add(s, lines.p, n);
		lines.p += n;
		lines.len -= n;
	}
	return r;
}

/* ---- writing ---- */

/* Until the file takes more: 0; -ECANCELED. */
static int wait_for(struct folded *s, int fd)
{
	struct pollfd fds[] = {{.fd = s->cancelled, .events = POLLIN},
			       {.fd = fd, .events = POLLOUT}};

	while (poll(fds, 2, -1) < 0)
		if (errno != EINTR)
			return -errno;
	return fds[0].revents ? -ECANCELED : 0;
}

/* *written: how much of it is out. A write to a pipe of standard output, which may not be set to
 * not block since others share it, is no larger than what poll() promises room for. */
static int write_all(struct folded *s, int fd, uint64_t *written)
{
	const uint64_t most = to_stdout(s) ? PIPE_BUF : 1 << 30;
	int r;

	for (*written = 0; *written < s->len;) {
		uint64_t left = s->len - *written;
		ssize_t n;

		r = wait_for(s, fd);
		if (r)
			return r;
		n = write(fd, s->text + *written, left < most ? left : most);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		*written += n > 0 ? (uint64_t)n : 0;
	}
	return 0;
}

/* The file as it is now; logrotate may have put another one there. */
static int open_file(struct folded *s)
{
	int fd = open(s->path, O_WRONLY | O_APPEND | O_CREAT | O_NOCTTY | O_NONBLOCK | O_CLOEXEC,
		      0640);
	int err = errno;

	if (fd >= 0)
		return fd;
	if (err == ENXIO)
		return fail(s, -EAGAIN, "nobody reads the pipe '%s'", s->path);
	return fail(s, -err, "cannot open '%s': %s", s->path, strerror(err));
}

/* The window doesn't fit any more: the file steps aside. *fd is the new one then. */
static int make_room(struct folded *s, int *fd, off_t *size)
{
	char old[PATH_MAX];
	struct stat st;
	int r;

	if (fstat(*fd, &st))
		return fail(s, -errno, "cannot look at '%s': %s", s->path, strerror(errno));
	*size = S_ISREG(st.st_mode) ? st.st_size : -1;
	if (*size <= 0 || !s->max_size || (uint64_t)*size + s->len <= s->max_size)
		return 0;
	if (snprintf(old, sizeof(old), "%s.1", s->path) >= (int)sizeof(old))
		return fail(s, -ENAMETOOLONG, "'%s.1' is too long a path", s->path);
	if (rename(s->path, old))
		return fail(s, -errno, "cannot rename '%s' to '%s': %s", s->path, old,
			    strerror(errno));
	r = open_file(s);
	if (r < 0)
		return r;
	close(*fd);
	*fd = r;
	*size = 0;
	return 0;
}

/* Half a window, or half a line, would count wrong; unless somebody has written behind it. */
static void take_back(struct folded *s, int fd, off_t size, uint64_t written)
{
	struct stat st;

	if (fstat(fd, &st) || (uint64_t)st.st_size != (uint64_t)size + written ||
	    ftruncate(fd, size))
		s->host->log(s->in, FUSEE_WARNING, "the first half of a lost window stays");
}

static int append(struct folded *s)
{
	off_t size = -1;
	uint64_t written;
	int fd = open_file(s), r;

	if (fd < 0)
		return fd;
	r = make_room(s, &fd, &size);
	if (r)
		goto out;
	r = write_all(s, fd, &written);
	if (!r)
		goto out;
	if (written && size >= 0)
		take_back(s, fd, size, written);
	fail(s, r, "cannot write to '%s': %s", s->path, strerror(-r));
out:
	close(fd);
	return r;
}

static int print(struct folded *s)
{
	uint64_t written;
	int r = write_all(s, STDOUT_FILENO, &written);

	return r ? fail(s, r, "cannot write to standard output: %s", strerror(-r)) : 0;
}

static int consume(void *ctx, const struct fusee_delivery *d)
{
	struct folded *s = ctx;
	struct fusee_str lines;
	int r = s->host->sink->encode(d->out, d->profile, FUSEE_FOLDED, &lines);

	if (!r)
		r = put_lines(s, lines, root_of(s, d->profile));
	if (r)
		return fail(s, r, "cannot make text of a profile: %s", strerror(-r));
	r = to_stdout(s) ? print(s) : append(s);
	if (!r)
		s->host->count(s->in, "bytes_written", NULL, 0, s->len);
	return r;
}

static void cancel(void *ctx)
{
	struct folded *s = ctx;

	eventfd_write(s->cancelled, 1);
}

static int init(void *ctx, struct fusee_instance *in, const struct fusee_host *host)
{
	struct folded *s = ctx;
	int fd;

	s->in = in;
	s->host = host;
	s->cancelled = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->cancelled < 0)
		return fail(s, -errno, "cannot make an eventfd: %s", strerror(errno));
	if (!*s->path)
		return fail(s, -EINVAL, "option 'path' is empty; '-' is standard output");
	if (to_stdout(s))
		return 0;
	fd = open_file(s);
	if (fd == -EAGAIN) /* a pipe: its reader may come later */
		return 0;
	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

static void fini(void *ctx)
{
	struct folded *s = ctx;

	if (s->cancelled > 0)
		close(s->cancelled);
	free(s->text);
}

static const struct fusee_sink_ops ops = {
	.size = sizeof(ops), .consume = consume, .cancel = cancel};

FUSEE_PLUGIN(folded, FUSEE_SINK, .version = "0.1",
	     .doc = "Appends stacks as text to a file, for flame graph tools and grep.",
	     .options = {options, sizeof(options) / sizeof(*options), sizeof(*options)},
	     .ctx_size = sizeof(struct folded), .init = init, .fini = fini, .ops = &ops);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks as text, "root;caller;leaf weight" lines, appended to a file or written to standard
 * output. A file receives the complete lines of a window or none of them. The reader of a pipe may
 * be slow; cancel() ends a write that waits for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fusee/bytes.h>
#include <fusee/helpers.h>

struct folded {
	struct fusee_self self;
	const char *path, *root;
	uint64_t max_size;
	int cancelled;           /* eventfd, readable from the first cancel() on */
	struct fusee_bytes text; /* the lines of the current window */
};

static const struct fusee_option options[] = {
	FUSEE_OPTION_STRING(struct folded, path, NULL,
			    "File that lines are appended to, opened again for each window; '-' is "
			    "standard output."),
	FUSEE_OPTION_STRING(struct folded, root, "process",
			    "Label of the target whose value becomes the first frame of each "
			    "stack; '' for none."),
	FUSEE_OPTION_SIZE(struct folded, max_size, "100MiB", 0, 0,
			  "A file that would become larger is renamed to PATH.1 first, replacing "
			  "the previous file; 0 sets no limit."),
};

static bool to_stdout(const struct folded *s)
{
	return !strcmp(s->path, "-");
}

/* ---- the text ---- */

/* The character for c in a root frame: no separator of frames or lines. */
static char plain(char c)
{
	return c == ';' ? ':' : (unsigned char)c < ' ' ? ' ' : c;
}

/* Fills s->text with the lines, each with the root frame in front. 0 or -ENOMEM. */
static int put_lines(struct folded *s, struct fusee_str lines, const struct fusee_label *root)
{
	fusee_bytes_reset(&s->text);
	while (!s->text.error && lines.len) {
		const char *end = memchr(lines.p, '\n', lines.len);
		uint64_t n = end ? (uint64_t)(end - lines.p) + 1 : lines.len;

		if (root) {
			uint64_t at = s->text.len;

			fusee_bytes_add(&s->text, root->str.p, root->str.len);
			for (; at < s->text.len; at++)
				s->text.p[at] = plain(s->text.p[at]);
			fusee_bytes_byte(&s->text, ';');
		}
		fusee_bytes_add(&s->text, lines.p, n);
		lines.p += n;
		lines.len -= n;
	}
	return s->text.error;
}

/* ---- writing ---- */

/* Waits until fd is writable. 0, -ECANCELED after cancel(), or another -errno. */
static int wait_for(struct folded *s, int fd)
{
	struct pollfd fds[] = {{.fd = s->cancelled, .events = POLLIN},
			       {.fd = fd, .events = POLLOUT}};

	while (poll(fds, 2, -1) < 0)
		if (errno != EINTR)
			return -errno;
	return fds[0].revents ? -ECANCELED : 0;
}

/*
 * Writes s->text. *written: the bytes that were written, also on failure. Standard output may be a
 * blocking pipe that other processes share, so its flags stay as they are and each write is at most
 * PIPE_BUF, for which poll() promises room. 0, -ECANCELED after cancel(), or another -errno.
 */
static int write_all(struct folded *s, int fd, uint64_t *written)
{
	const uint64_t max = to_stdout(s) ? PIPE_BUF : 1 << 30;
	int r;

	for (*written = 0; *written < s->text.len;) {
		uint64_t rest = s->text.len - *written;
		ssize_t n;

		r = wait_for(s, fd);
		if (r)
			return r;
		n = write(fd, s->text.p + *written, rest < max ? rest : max);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		*written += n > 0 ? (uint64_t)n : 0;
	}
	return 0;
}

/* Opens the file for appending. The path is opened for each window, since logrotate may have moved
 * the previous file away. A descriptor, or -errno after host->fail(). */
static int open_file(struct folded *s)
{
	int fd = open(s->path, O_WRONLY | O_APPEND | O_CREAT | O_NOCTTY | O_NONBLOCK | O_CLOEXEC,
		      0640);
	int err = errno;

	if (fd >= 0)
		return fd;
	if (err == ENXIO)
		return fusee_fail(&s->self, -EAGAIN, "no process reads the pipe '%s'", s->path);
	return fusee_fail(&s->self, -err, "cannot open '%s': %s", s->path, strerror(err));
}

/* Renames the file to PATH.1 and opens a new file if the window would exceed max_size; *fd is then
 * the new file. *size: bytes of the file, -1: not a regular file. */
static int make_room(struct folded *s, int *fd, off_t *size)
{
	char old[PATH_MAX];
	struct stat st;
	int r;

	if (fstat(*fd, &st))
		return fusee_fail(&s->self, -errno, "cannot look at '%s': %s", s->path,
				  strerror(errno));
	*size = S_ISREG(st.st_mode) ? st.st_size : -1;
	if (*size <= 0 || !s->max_size || (uint64_t)*size + s->text.len <= s->max_size)
		return 0;
	if (snprintf(old, sizeof(old), "%s.1", s->path) >= (int)sizeof(old))
		return fusee_fail(&s->self, -ENAMETOOLONG, "'%s.1' is too long a path", s->path);
	if (rename(s->path, old))
		return fusee_fail(&s->self, -errno, "cannot rename '%s' to '%s': %s", s->path, old,
				  strerror(errno));
	r = open_file(s);
	if (r < 0)
		return r;
	close(*fd);
	*fd = r;
	*size = 0;
	return 0;
}

/* Truncates the file to its size before this window, since half a window would be counted as a
 * complete window. A file that another process has appended to meanwhile stays. */
static void remove_partial_window(struct folded *s, int fd, off_t size, uint64_t written)
{
	struct stat st;

	if (fstat(fd, &st) || (uint64_t)st.st_size != (uint64_t)size + written ||
	    ftruncate(fd, size))
		fusee_log(&s->self, FUSEE_WARNING,
			  "the first part of a lost window remains in the file");
}

static int append_to_file(struct folded *s)
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
		remove_partial_window(s, fd, size, written);
	fusee_fail(&s->self, r, "cannot write to '%s': %s", s->path, strerror(-r));
out:
	close(fd);
	return r;
}

static int write_stdout(struct folded *s)
{
	uint64_t written;
	int r = write_all(s, STDOUT_FILENO, &written);

	return r ? fusee_fail(&s->self, r, "cannot write to standard output: %s", strerror(-r)) : 0;
}

static int consume(void *ctx, const struct fusee_delivery *d)
{
	struct folded *s = ctx;
	struct fusee_str lines;
	int r = s->self.host->sink->encode(d->out, d->profile, FUSEE_FOLDED, &lines);

	if (!r)
		r = put_lines(s, lines, fusee_find_label(d->profile->resource, s->root));
	if (r)
		return fusee_fail(&s->self, r, "cannot format a profile as text: %s", strerror(-r));
	r = to_stdout(s) ? write_stdout(s) : append_to_file(s);
	if (!r)
		fusee_count(&s->self, "bytes_written", s->text.len);
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

	fusee_self_init(ctx, in, host);
	s->cancelled = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->cancelled < 0)
		return fusee_fail(&s->self, -errno, "cannot create an eventfd: %s",
				  strerror(errno));
	if (!*s->path)
		return fusee_fail(&s->self, -EINVAL,
				  "option 'path' is empty; '-' is standard output");
	if (to_stdout(s))
		return 0;
	fd = open_file(s);
	if (fd == -EAGAIN) /* a pipe that has no reader yet */
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
	fusee_bytes_fini(&s->text);
}

static const struct fusee_sink_ops ops = {
	.size = sizeof(ops), .consume = consume, .cancel = cancel};

FUSEE_PLUGIN(folded, FUSEE_SINK, .version = "0.1",
	     .doc = "Appends stacks as text to a file, for flame graph tools and grep.",
	     .options = FUSEE_TABLE(options), .ctx_size = sizeof(struct folded), .init = init,
	     .fini = fini, .ops = &ops);

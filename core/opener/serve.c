// SPDX-License-Identifier: Apache-2.0
/* The calls on names and memory of targets. Each can wait for as long as a file system does. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "process/safe_open.h"
#include "symbols/debugfile.h"
#include "opener/internal/protocol.h"

int opener_describe(struct opener_answer *a)
{
	struct stat st;

	if (fstat(a->fd, &st))
		return -errno;
	a->st = (struct opener_stat){.dev = st.st_dev,
				     .ino = st.st_ino,
				     .size = (uint64_t)st.st_size,
				     .mtime = (uint64_t)st.st_mtim.tv_sec,
				     .mtime_ns = (uint64_t)st.st_mtim.tv_nsec};
	return 0;
}

static int take(struct opener_answer *a, int fd)
{
	if (fd < 0)
		return fd;
	a->fd = fd;
	return opener_describe(a);
}

/* Returns an O_PATH descriptor of the path below the process's root, or -errno. No link is
 * followed.
 */
static int hold(const struct opener_query *q)
{
	char root[64];
	int dir, held;

	if (strstr(q->path, ".."))
		return -EINVAL;
	snprintf(root, sizeof(root), "/proc/%d/root", (int)q->pid);
	dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	held = safe_hold(dir, q->path, RESOLVE_NO_SYMLINKS);
	close(dir);
	return held;
}

static int open_file(const struct opener_query *q, struct opener_answer *a)
{
	struct stat st;
	int held = hold(q), fd;

	if (held < 0)
		return held;
	fd = safe_reopen(held, &st);
	close(held);
	return take(a, fd);
}

static int open_folder(const struct opener_query *q, struct opener_answer *a)
{
	int err = take(a, hold(q));
	struct stat st;

	if (!err && fstat(a->fd, &st))
		err = -errno;
	return err ? err : S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

static int open_debug(const struct opener_query *q, struct opener_answer *a)
{
	char root[64];
	int fd;

	snprintf(root, sizeof(root), "/proc/%d/root", (int)q->pid);
	fd = debugfile_open(root, q->path, q->build_id, q->build_id_len, q->link);
	if (fd < 0)
		fd = debugfile_open("", q->path, q->build_id, q->build_id_len, q->link);
	return take(a, fd);
}

/* The name comes from the file and is not trusted. It is a path below the root of the process.
 * Below fusee's own root only its last part is used, in the folders of dwz files. */
static int open_alt(const struct opener_query *q, struct opener_answer *a)
{
	const char *base = strrchr(q->path, '/');
	char root[64];
	int fd;

	snprintf(root, sizeof(root), "/proc/%d/root", (int)q->pid);
	fd = debugfile_open_alt(root, q->path, q->build_id, q->build_id_len);
	if (fd < 0)
		fd = debugfile_open_alt("", base ? base + 1 : q->path, q->build_id,
					q->build_id_len);
	return take(a, fd);
}

static int read_memory(const struct opener_query *q, struct opener_answer *a)
{
	struct iovec to = {q->buf, q->len}, from = {(void *)(uintptr_t)q->address, q->len};
	ssize_t n = process_vm_readv(q->pid, &to, 1, &from, 1, 0);

	if (n < 0)
		return -errno;
	a->len = (uint32_t)n;
	return n == (ssize_t)q->len ? 0 : -EFAULT;
}

static int read_text(const struct opener_query *q, struct opener_answer *a)
{
	char path[96];
	ssize_t n = 0;
	int fd;

	if (strchr(q->path, '/') || strchr(q->path, '.'))
		return -EINVAL;
	snprintf(path, sizeof(path), "/proc/%d/%.60s", (int)q->pid, q->path);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	while (a->len < q->len && (n = pread(fd, (char *)q->buf + a->len, q->len - a->len,
					     (off_t)(q->address + a->len))) > 0)
		a->len += (uint32_t)n;
	n = n < 0 ? -errno : 0;
	close(fd);
	return (int)n;
}

static int serve(const struct opener_query *q, struct opener_answer *a)
{
	switch (q->kind) {
	case OPENER_MAPPING:
		return take(a, safe_open_mapping(q->pid, &q->mapping));
	case OPENER_FILE:
		return open_file(q, a);
	case OPENER_FOLDER:
		return open_folder(q, a);
	case OPENER_DEBUG:
		return open_debug(q, a);
	case OPENER_ALT:
		return open_alt(q, a);
	case OPENER_MEMORY:
		return read_memory(q, a);
	case OPENER_TEXT:
		return read_text(q, a);
	case OPENER_CONTEXT:
		return opener_read_context(q, a);
	case OPENER_COMPARE:
		return opener_compare(q);
	}
	return -EBADMSG;
}

void opener_serve(const struct opener_query *q, struct opener_answer *a)
{
	*a = (struct opener_answer){.fd = -1};
	a->err = serve(q, a);
	if (!a->err || a->fd < 0)
		return;
	close(a->fd);
	a->fd = -1;
}

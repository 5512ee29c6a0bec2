// SPDX-License-Identifier: Apache-2.0
/* Candidates for a debug file, each opened below a root. */
#include "symbols/debugfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "process/safe_open.h"

#define DEBUG_DIR "/usr/lib/debug"

/* Whether everybody may read the file, or it is the user's own where fusee has no rights. The names
 * come from files, or from a worker that a malicious file controls, so the worker never gets a file
 * that the file's writer could not read. */
static bool is_public(const struct stat *st)
{
	return st->st_mode & S_IROTH || (geteuid() && st->st_uid == geteuid());
}

/* fd if it is an ELF file; otherwise it is closed. */
static int elf_only(int fd)
{
	char magic[4];

	if (fd < 0 || (pread(fd, magic, 4, 0) == 4 && !memcmp(magic, "\177ELF", 4)))
		return fd;
	close(fd);
	return -ENOEXEC;
}

/* Opens the file if it is public, which is checked before. */
static int open_public(int root, const char *path, uint64_t resolve)
{
	int held = safe_hold(root, path, resolve), fd;
	struct stat st;

	if (held < 0)
		return held;
	if (fstat(held, &st))
		fd = -errno;
	else
		fd = is_public(&st) ? safe_reopen(held, &st) : -EACCES;
	close(held);
	return fd;
}

/* Whether everybody may search the folders of a path: only then does a public mode of the file mean
 * that everybody may read it. */
static bool is_reachable(int root, const char *path)
{
	char folder[PATH_MAX];
	bool reachable = true;
	struct stat st;

	for (const char *p = strchr(path + 1, '/'); p && reachable; p = strchr(p + 1, '/')) {
		int held;

		if ((size_t)(p - path) >= sizeof(folder))
			return false;
		memcpy(folder, path, (size_t)(p - path));
		folder[p - path] = '\0';
		held = safe_hold(root, folder, RESOLVE_NO_SYMLINKS);
		reachable = held >= 0 && !fstat(held, &st) &&
			    (st.st_mode & S_IXOTH || (geteuid() && st.st_uid == geteuid()));
		if (held >= 0)
			close(held);
	}
	return reachable;
}

static int try(int root, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int try(int root, const char *format, ...)
{
	char path[PATH_MAX];
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(path, sizeof(path), format, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENOENT;
	return open_public(root, path, 0);
}

/* Bytes of path before its last slash. */
static int folder(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (int)(slash - path) : 0;
}

static int open_root(const char *root)
{
	int fd = open(*root ? root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int by_build_id(int root, const uint8_t *build_id, size_t n)
{
	char id[129];

	if (n < 2 || n > sizeof(id) / 2)
		return -ENOENT;
	text_hex(id, build_id, n);
	return try(root, DEBUG_DIR "/.build-id/%.2s/%s.debug", id, id + 2);
}

int debugfile_open(const char *root, const char *path, const uint8_t *build_id, uint32_t n,
		   const char *link)
{
	int dir = open_root(root), at = folder(path), fd;

	if (dir < 0)
		return dir;
	fd = by_build_id(dir, build_id, n);
	/* .gnu_debuglink is a file name; with a slash it could be any path below the root */
	if (fd < 0 && link && *link && !strchr(link, '/')) {
		/* a link with the binary's own name is not the binary */
		if (strcmp(link, path + at + (path[at] == '/')))
			fd = try(dir, "%.*s/%s", at, path, link);
		if (fd < 0)
			fd = try(dir, "%.*s/.debug/%s", at, path, link);
		if (fd < 0)
			fd = try(dir, DEBUG_DIR "%.*s/%s", at, path, link);
		/* with a merged /usr, debug packages have either path */
		if (fd < 0)
			fd = strncmp(path, "/usr/", 5)
				     ? try(dir, DEBUG_DIR "/usr%.*s/%s", at, path, link)
				     : try(dir, DEBUG_DIR "%.*s/%s", at - 4, path + 4, link);
	}
	close(dir);
	return fd < 0 ? -ENOENT : fd;
}

int debugfile_open_alt(const char *root, const char *name, const uint8_t *build_id, uint32_t n)
{
	const char *base = strrchr(name, '/');
	int dir = open_root(root), fd;

	if (dir < 0)
		return dir;
	fd = by_build_id(dir, build_id, n);
	if (fd < 0 && name[0] == '/' && is_reachable(dir, name))
		fd = elf_only(open_public(dir, name, RESOLVE_NO_SYMLINKS));
	base = base ? base + 1 : name;
	if (fd < 0 && *base)
		fd = try(dir, DEBUG_DIR "/.dwz/%s", base);
	if (fd < 0 && *base)
		fd = try(dir, DEBUG_DIR "/.dwz/x86_64-linux-gnu/%s", base);
	close(dir);
	return fd < 0 ? -ENOENT : fd;
}

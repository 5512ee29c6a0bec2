/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unfinished files. The process that writes a file holds its lock (flock), which its end releases.
 * So every process can tell the remains of a crash from files that are being written.
 */
#include <fusee/folder.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATIENCE (5 * FUSEE_SECOND) /* a slow disk may take long to remove another file */
#define ATTEMPT_US 1000
#define WRITE_MAX ((uint64_t)1 << 30) /* bytes of one write() */

int fusee_folder_remove_unlocked(int at, const char *part)
{
	int fd = openat(at, part, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	int removed = 0;
	struct stat st;

	if (fd < 0)
		return 0;
	/* a file without a link is removed already, and its name may belong to a new file */
	if (!flock(fd, LOCK_EX | LOCK_NB) && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_nlink)
		removed = !unlinkat(at, part, 0);
	close(fd);
	return removed;
}

/* Removes an unfinished file of this name. False: another process of fusee writes it. */
static bool clear_name(int at, const char *part)
{
	struct stat st;

	if (fstatat(at, part, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return !unlinkat(at, part, 0);
	return fusee_folder_remove_unlocked(at, part);
}

/* -EAGAIN: another process writes a file of this name, or found this file before it was locked, and
 * removes it. */
static int create_locked(int at, const char *part)
{
	const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(at, part, flags, 0600), r;
	struct stat st;

	if (fd < 0 && errno == EEXIST) {
		if (!clear_name(at, part))
			return -EAGAIN;
		fd = openat(at, part, flags, 0600);
	}
	if (fd < 0)
		return errno == EEXIST ? -EAGAIN : -errno;
	r = flock(fd, LOCK_EX | LOCK_NB) || fstat(fd, &st) ? -errno : 0;
	if (!r && st.st_nlink)
		return fd;
	if (r && r != -EWOULDBLOCK) /* other processes cannot lock it either */
		unlinkat(at, part, 0);
	close(fd);
	return r ? r : -EAGAIN;
}

int fusee_folder_create(int at, const char *part, uint32_t file_mode)
{
	uint64_t until = fusee_now(CLOCK_MONOTONIC) + PATIENCE;
	int fd = create_locked(at, part), r;

	while (fd == -EAGAIN && fusee_now(CLOCK_MONOTONIC) < until) {
		usleep(ATTEMPT_US);
		fd = create_locked(at, part);
	}
	if (fd >= 0 && fchmod(fd, file_mode)) {
		r = -errno;
		unlinkat(at, part, 0);
		close(fd);
		fd = r;
	}
	return fd;
}

int fusee_folder_write(int fd, const void *bytes, uint64_t len)
{
	const char *at = bytes;

	while (len) {
		ssize_t n = write(fd, at, len < WRITE_MAX ? len : WRITE_MAX);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		at += n;
		len -= (uint64_t)n;
	}
	return 0;
}

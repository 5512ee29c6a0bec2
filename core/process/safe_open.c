/* SPDX-License-Identifier: Apache-2.0 */
#include "process/safe_open.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

int safe_hold(int root, const char *path, uint64_t resolve)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | resolve};
	int held = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));

	return held < 0 ? -errno : held;
}

int safe_reopen(int held, struct stat *st)
{
	char path[64];
	int fd;

	if (fstat(held, st))
		return -errno;
	if (!S_ISREG(st->st_mode))
		return -EINVAL;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", held);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

/* ---- the file of a mapping ---- */

bool safe_mount_device(int fd, const char *mountinfo, dev_t *dev)
{
	unsigned int major, minor;
	struct statx more;
	char *line = NULL;
	bool found = false;
	uint64_t id;
	size_t cap = 0;
	FILE *f;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &more) || !(more.stx_mask & STATX_MNT_ID))
		return false;
	f = fopen(mountinfo, "re");
	while (f && !found && getline(&line, &cap, f) > 0)
		found = sscanf(line, "%" SCNu64 " %*u %u:%u", &id, &major, &minor) == 3 &&
			id == more.stx_mnt_id;
	free(line);
	if (f)
		fclose(f);
	if (found)
		*dev = makedev(major, minor);
	return found;
}

/* The device of fusee's own root, as the kernel prints it for mappings; 0: not known. It is read
 * once, because readers of mountinfo wait for mounts. */
static dev_t own_device;

/* Whether the held file is on the mapping's device. btrfs and overlayfs report another device for a
 * file than for a mapping of it; mountinfo of the process, or of fusee, has the mapping's. pid 0:
 * the file is on fusee's own root. */
static bool is_on_device(int held, const struct stat *st, pid_t pid, const struct procfs_mapping *m)
{
	dev_t mapped = makedev(m->dev_major, m->dev_minor), dev;
	char mounts[64];

	if (!mapped || st->st_dev == mapped)
		return true;
	if (!pid)
		return mapped == own_device;
	snprintf(mounts, sizeof(mounts), "/proc/%d/mountinfo", (int)pid);
	return (safe_mount_device(held, mounts, &dev) ||
		safe_mount_device(held, "/proc/self/mountinfo", &dev)) &&
	       dev == mapped;
}

/* Opens the held file if it is the mapping's, and closes `held`. `held` < 0 is returned. */
static int open_judged(int held, pid_t pid, const struct procfs_mapping *m)
{
	uint32_t generation[2]; /* the ioctl writes an int, though its number says long */
	struct stat st;
	int fd;

	if (held < 0)
		return held;
	if (fstat(held, &st))
		fd = -errno;
	else if (!S_ISREG(st.st_mode))
		fd = -EINVAL;
	else if (m->ino && (st.st_ino != m->ino || !is_on_device(held, &st, pid, m)))
		fd = -ESTALE;
	else
		fd = safe_reopen(held, &st);
	close(held);
	if (fd >= 0 && m->generation && !ioctl(fd, FS_IOC_GETVERSION, generation) &&
	    generation[0] != (uint32_t)m->generation) {
		close(fd);
		return -ESTALE;
	}
	return fd;
}

static int open_below(const char *root, pid_t pid, const struct procfs_mapping *m)
{
	int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC), fd;

	if (dir < 0)
		return -errno;
	fd = open_judged(safe_hold(dir, m->name, RESOLVE_NO_SYMLINKS), pid, m);
	close(dir);
	return fd;
}

/* File systems on disks of this machine, whose users cannot change what they answer. */
static bool is_on_disk(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs))
		return false;
	return fs.f_type == EXT4_SUPER_MAGIC || fs.f_type == XFS_SUPER_MAGIC ||
	       fs.f_type == BTRFS_SUPER_MAGIC || fs.f_type == F2FS_SUPER_MAGIC ||
	       fs.f_type == OVERLAYFS_SUPER_MAGIC;
}

int safe_open_own(const struct procfs_mapping *m)
{
	static int root = -1;
	static bool tried;

	if (!tried) {
		tried = true;
		root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (root >= 0 && !is_on_disk(root)) {
			close(root);
			root = -1;
		}
		if (root >= 0 && !safe_mount_device(root, "/proc/self/mountinfo", &own_device))
			own_device = 0;
	}
	if (root < 0 || *m->name != '/' || !m->ino)
		return -ENOENT;
	/* CACHED: a process that creates a file holds the lock of its folder, and may be stopped
	 * then. Names in the kernel's cache need no lock, and names of mapped files are in it. */
	return open_judged(
		safe_hold(root, m->name, RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV | RESOLVE_CACHED), 0,
		m);
}

/* Whether the error will pass and says nothing about the file. */
static bool is_shortage(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM || err == -EAGAIN;
}

int safe_open_mapping(pid_t pid, const struct procfs_mapping *m)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid, m->lo,
		 m->hi);
	fd = open(path, O_PATH | O_CLOEXEC); /* the link leads to the mapped file, by no name */
	fd = open_judged(fd < 0 ? -errno : fd, pid, m);
	if (fd >= 0 || *m->name != '/' || is_shortage(fd))
		return fd;
	snprintf(path, sizeof(path), "/proc/%d/root", (int)pid);
	fd = open_below(path, pid, m);
	if (fd >= 0 || !m->ino || is_shortage(fd))
		return fd;
	return open_below("/", pid, m);
}

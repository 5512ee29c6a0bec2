// SPDX-License-Identifier: Apache-2.0
/* Decides which files the agent may hold open, and copies the others. Closing a descriptor of a
 * file on FUSE waits for its server (FUSE_FLUSH), even when a process ends. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "process/safe_open.h"
#include "opener/internal/protocol.h"

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif
#define PIECE 65536u

/* Whether the mount namespace of the process belongs to the opener's user namespace, so that a user
 * without rights cannot have changed its mounts. */
static bool has_trusted_mounts(pid_t pid)
{
	struct stat own, theirs;
	char path[64];
	int ns, user;
	bool same;

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
	ns = open(path, O_RDONLY | O_CLOEXEC);
	if (ns < 0)
		return false;
	user = ioctl(ns, NS_GET_USERNS);
	same = user >= 0 && !fstat(user, &theirs) && !stat("/proc/self/ns/user", &own) &&
	       own.st_dev == theirs.st_dev && own.st_ino == theirs.st_ino;
	if (user >= 0)
		close(user);
	close(ns);
	return same;
}

/* Whether root mounted the overlay, as for a container. An overlay can lie over any file system,
 * and in a user namespace any user can mount an overlay over FUSE. */
static bool is_trusted_overlay(int fd, pid_t pid)
{
	char mounts[64];
	dev_t dev;

	if (safe_mount_device(fd, "/proc/self/mountinfo", &dev))
		return has_trusted_mounts(getpid());
	snprintf(mounts, sizeof(mounts), "/proc/%d/mountinfo", (int)pid);
	return has_trusted_mounts(pid) && safe_mount_device(fd, mounts, &dev);
}

static bool is_among(uint64_t type, const uint32_t *types, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((uint32_t)type == types[i])
			return true;
	return false;
}

/* Whether it is a file system of a file server. Closing a descriptor that was opened for reading
 * does not wait for these. */
static bool is_remote(uint64_t type)
{
	static const uint32_t types[] = {
		NFS_SUPER_MAGIC, CIFS_SUPER_MAGIC,         SMB2_SUPER_MAGIC, CEPH_SUPER_MAGIC,
		AFS_FS_MAGIC,    0x0bd00bd0u /* lustre */, 0x47504653u /* gpfs */};

	return is_among(type, types, sizeof(types) / sizeof(*types));
}

static bool is_prompt(const struct statfs *fs, int fd, pid_t pid)
{
	static const uint32_t types[] = {EXT4_SUPER_MAGIC,
					 XFS_SUPER_MAGIC,
					 BTRFS_SUPER_MAGIC,
					 TMPFS_MAGIC,
					 RAMFS_MAGIC,
					 F2FS_SUPER_MAGIC,
					 SQUASHFS_MAGIC,
					 ISOFS_SUPER_MAGIC,
					 MSDOS_SUPER_MAGIC,
					 HUGETLBFS_MAGIC,
					 PROC_SUPER_MAGIC,
					 SYSFS_MAGIC,
					 0xe0f5e1e2u /* erofs */,
					 0x2011bab0u /* exfat */,
					 0x2fc12fc1u /* zfs */,
					 0xca451a4eu /* bcachefs */};

	if ((uint32_t)fs->f_type == OVERLAYFS_SUPER_MAGIC)
		return is_trusted_overlay(fd, pid);
	return is_among((uint64_t)fs->f_type, types, sizeof(types) / sizeof(*types));
}

bool opener_is_prompt(int fd, pid_t pid)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) && is_prompt(&fs, fd, pid);
}

/* Copies the contents; holes stay holes. */
static int copy(int from, int to, uint64_t size, uint64_t most)
{
	static char piece[PIECE];
	uint64_t done = 0;
	off_t at = 0;

	if (ftruncate(to, (off_t)size))
		return -errno;
	while ((at = lseek(from, at, SEEK_DATA)) >= 0 && (uint64_t)at < size) {
		ssize_t n = pread(from, piece, PIECE, at);

		if (n <= 0)
			return n ? -errno : 0; /* it has shrunk */
		done += (uint64_t)n;
		if (done > most)
			return -EFBIG;
		if (pwrite(to, piece, (size_t)n, at) != n)
			return -errno;
		at += n;
	}
	return at < 0 && errno != ENXIO ? -errno : 0;
}

int opener_detach(int *fd, pid_t pid, uint64_t most_copied, struct opener_stat *st)
{
	struct statfs fs;
	int memory, err;

	if (fstatfs(*fd, &fs)) /* FUSE passes the call on to its server */
		fs.f_type = FUSE_SUPER_MAGIC;
	if (is_prompt(&fs, *fd, pid))
		return 0;
	st->remote = is_remote((uint64_t)fs.f_type);
	if (st->remote)
		return 0;
	if (st->size > OPENER_MOST_COPIED)
		return -EFBIG;
	if (st->size > most_copied)
		return -ENOBUFS;
	memory = memfd_create("copy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (memory < 0)
		return -errno;
	err = copy(*fd, memory, st->size, most_copied);
	close(*fd); /* it can wait, so the opener closes it before it answers */
	*fd = memory;
	st->copied = st->size ? st->size : 1;
	if (!err && fcntl(memory, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW))
		err = -errno;
	return err;
}

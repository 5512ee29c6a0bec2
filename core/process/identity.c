/* SPDX-License-Identifier: Apache-2.0 */
/* Which process it is, and whose: by a descriptor of the process, or by /proc. */
#include <errno.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "process/internal/kept.h"
#include "process/procfs.h"

#ifndef PIDFS_MAGIC
#define PIDFS_MAGIC 0x50494446u /* "PIDF" */
#endif

/* The number that a descriptor of a process has in the file system of such descriptors. 0 or
 * -ENOSYS: the kernel has none. */
static int pidfd_identity(int fd, uint64_t *identity)
{
	static _Atomic bool has; /* the kernel has that file system */
	struct statfs fs;
	struct stat st;

	if (!has) {
		if (fstatfs(fd, &fs) || (uint32_t)fs.f_type != PIDFS_MAGIC)
			return -ENOSYS;
		has = true;
	}
	if (fstat(fd, &st))
		return -ENOSYS;
	*identity = st.st_ino;
	return 0;
}

/* The kernel's linux/pidfd.h, which Debian 12 lacks; the size is part of the ioctl's number. */
struct pidfd_info {
	uint64_t mask, cgroup;
	uint32_t pid, tgid, ppid, ruid, rgid, euid, egid, suid, sgid, fsuid, fsgid, more;
};

#define PIDFD_INFO _IOWR(0xff, 11, struct pidfd_info) /* since Linux 6.13 */
#define PIDFD_INFO_USERS 2u
#define PIDFD_INFO_CGROUP 4u

/* identity 0: there is none. Takes 4 us, reading /proc/PID/status 11 us. -errno also where the
 * status has the users. */
static int ask_users(pid_t pid, struct pidfd_info *info, uint64_t *identity)
{
	static _Atomic bool lacks; /* the kernel is older */
	int fd = lacks ? -1 : (int)syscall(SYS_pidfd_open, pid, 0), r = 0;

	*info = (struct pidfd_info){.mask = PIDFD_INFO_USERS | PIDFD_INFO_CGROUP};
	*identity = 0;
	if (fd < 0)
		return -ENOSYS;
	if (ioctl(fd, PIDFD_INFO, info))
		r = -errno;
	else if (!(info->mask & PIDFD_INFO_USERS))
		r = -ENOSYS;
	else if (pidfd_identity(fd, identity))
		*identity = 0;
	close(fd);
	if (r == -ENOTTY)
		lacks = true;
	return r;
}

/* The users and the identity, kept or read. 0 or -errno. */
static int find_users(pid_t pid, struct kept *to)
{
	struct kept *kept = kept_of(pid);
	struct pidfd_info info;
	int r;

	if (kept && kept->has_users) {
		*to = *kept;
		return 0;
	}
	r = ask_users(pid, &info, &to->identity);
	if (r)
		return r;
	to->real = info.ruid;
	to->effective = info.euid;
	to->cgroup = info.mask & PIDFD_INFO_CGROUP ? info.cgroup : 0;
	if (kept) {
		kept->has_users = true;
		kept->identity = to->identity;
		kept->real = to->real;
		kept->effective = to->effective;
		kept->cgroup = to->cgroup;
	}
	return 0;
}

/* By a descriptor of the process, without its users. 0 or -errno. */
static int open_identity(pid_t pid, uint64_t *identity)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0), r = -errno;

	if (fd >= 0) {
		r = pidfd_identity(fd, identity);
		close(fd);
	}
	return r;
}

int procfs_identity(pid_t pid, uint64_t *identity)
{
	struct kept *kept = kept_of(pid), now;
	int r;

	/* its users are requested later, too */
	if (kept && !kept->identity && !find_users(pid, &now) && now.identity)
		kept->identity = now.identity;
	if (kept && kept->identity) {
		*identity = kept->identity;
		return 0;
	}
	r = open_identity(pid, identity);
	if (!r && kept)
		kept->identity = *identity;
	return !r || r == -ESRCH ? r : procfs_start_ticks(pid, identity);
}

uint64_t procfs_cgroup_id(pid_t pid)
{
	struct kept now;

	return find_users(pid, &now) ? 0 : now.cgroup;
}

int procfs_identity_and_user(pid_t pid, uint64_t *identity, uid_t *real)
{
	struct kept now;
	int r = find_users(pid, &now);

	if (r)
		return r;
	*identity = now.identity;
	*real = now.real;
	return now.identity ? 0 : -ENOSYS;
}

int procfs_user(pid_t pid, uid_t *uid)
{
	struct procfs_status status;
	struct kept now;
	int r = find_users(pid, &now);

	if (!r) {
		*uid = now.effective;
		return 0;
	}
	r = procfs_status(pid, &status);
	if (!r)
		*uid = status.uid;
	return r;
}

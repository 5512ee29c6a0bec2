// SPDX-License-Identifier: Apache-2.0
#include "sandbox/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of kernels that are newer than the headers of the build. */
#ifndef __NR_landlock_create_ruleset
#define __NR_landlock_create_ruleset 444
#define __NR_landlock_add_rule 445
#define __NR_landlock_restrict_self 446
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#endif

static int drop_capabilities(uint64_t kept)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[2] = {0};

	if (syscall(SYS_capget, &head, caps))
		return -errno;
	for (uint32_t i = 0; i < 2; i++) {
		caps[i].permitted &= (uint32_t)(kept >> 32 * i);
		caps[i].effective = caps[i].permitted;
		caps[i].inheritable = 0;
	}
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	/* Fails without CAP_SETPCAP, and is not needed then: no_new_privs holds. */
	for (unsigned long c = 0; c < 64; c++)
		prctl(PR_CAPBSET_DROP, c, 0, 0, 0);
	return syscall(SYS_capset, &head, caps) ? -errno : 0;
}

int confine_rights(uint64_t kept)
{
	int err = prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) ? -errno : drop_capabilities(kept);

	if (err)
		return err;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) ? -errno
											    : 0;
}

int confine_stderr(void)
{
	int err = 0;
#ifndef SANITIZED
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (null < 0 || dup2(null, STDERR_FILENO) < 0)
		err = -errno;
	if (null >= 0)
		close(null);
#endif
	return err;
}

static int limit(int resource, uint64_t value)
{
	struct rlimit r = {value, value};

	return setrlimit((__rlimit_resource_t)resource, &r) ? -errno : 0;
}

int confine_limits(uint64_t file_bytes, uint64_t memory_bytes)
{
	int err = limit(RLIMIT_CORE, 0);

	if (!err)
		err = limit(RLIMIT_NOFILE, 64);
	if (!err)
		err = limit(RLIMIT_FSIZE, file_bytes);
#ifdef SANITIZED
	(void)memory_bytes;
#else
	if (!err)
		err = limit(RLIMIT_DATA, memory_bytes);
#endif
	return err;
}

/* ---- Landlock ---- */

/* The kernel's, which the headers of the build may not have. */
struct ruleset {
	uint64_t fs, net, scoped;
};
struct beneath {
	uint64_t allowed;
	int32_t fd;
} __attribute__((packed));

int confine_ruleset(uint64_t ports, uint64_t *fs)
{
	/* Rights on files by version; the first has 13. */
	static const uint64_t rights[] = {0, 0x1fff, 0x3fff, 0x7fff, 0x7fff, 0xffff};
	long version = syscall(__NR_landlock_create_ruleset, NULL, 0, 1), fd;
	struct ruleset r = {.net = ports, .scoped = 3}; /* abstract sockets, signals of others */

	if (version <= 0)
		return -ENOSYS;
	*fs = r.fs = rights[version < 5 ? version : 5];
	fd = syscall(__NR_landlock_create_ruleset, &r,
		     version < 4   ? 8
		     : version < 6 ? 16
				   : sizeof(r),
		     0);
	return fd < 0 ? -errno : (int)fd;
}

void confine_allow(int ruleset, const char *path, uint64_t rights)
{
	int fd = open(path, O_PATH | O_CLOEXEC);
	struct beneath b = {rights, fd};

	if (fd < 0)
		return;
	syscall(__NR_landlock_add_rule, ruleset, 1, &b, 0);
	close(fd);
}

int confine_files(int ruleset)
{
	int err = syscall(__NR_landlock_restrict_self, ruleset, 0) ? -errno : 0;

	close(ruleset);
	return err;
}

/* ---- system calls ---- */

int confine_calls(struct sock_filter *code, size_t n)
{
	struct sock_fprog f = {.len = (unsigned short)n, .filter = code};

	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &f)
		       ? -errno ?: -EIO
		       : 0;
}

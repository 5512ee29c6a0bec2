// SPDX-License-Identifier: Apache-2.0
#include "sandbox/confine.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

int confine_capabilities(uint64_t kept)
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
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	(void)memory_bytes;
#else
	if (!err)
		err = limit(RLIMIT_DATA, memory_bytes);
#endif
	return err;
}

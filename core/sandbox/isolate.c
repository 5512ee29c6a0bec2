// SPDX-License-Identifier: Apache-2.0
/* What a worker has of the machine: nothing. */
#include "sandbox/internal/isolate.h"

#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "sandbox/confine.h"

/* ---- namespaces ---- */

/* Replaces the root by an empty file system that cannot be written. */
static int empty_root(void)
{
	if (mount(NULL, "/", NULL, MS_PRIVATE | MS_REC, NULL) ||
	    mount("none", "/tmp", "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  "size=4k,mode=0555") ||
	    chdir("/tmp") || syscall(SYS_pivot_root, ".", ".") || umount2(".", MNT_DETACH) ||
	    chdir("/"))
		return -errno;
	return 0;
}

/* ---- the user ---- */

/*
 * The saved id stays root's: the agent, which need not have CAP_KILL, must be able to kill the
 * process. It gives no right, and no call that could use it is allowed.
 */
static int become_user(void)
{
	uid_t id = ISOLATE_UID + (uid_t)getpid();

	if (geteuid())
		return 0;
	if (syscall(SYS_setgroups, 0, NULL) || syscall(SYS_setresgid, id, id, id))
		log_debug("no group of its own: %s", strerror(errno));
	if (syscall(SYS_setresuid, id, id, 0)) {
		log_debug("no user of its own: %s", strerror(errno));
		return errno == EINVAL || errno == EPERM || errno == EAGAIN ? 0 : -errno;
	}
	return 0;
}

/*
 * With CAP_SYS_ADMIN the namespaces need no user namespace. Without it they do, and the user is
 * changed before: a new namespace maps no ids, so that afterwards no other could be had. A worker
 * whose id could not be changed gets a user namespace as well: root's id has no rights outside it.
 */
int isolate_enter(void)
{
	int kinds = CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNS;
	bool entered = !unshare(kinds);
	int err = entered ? empty_root() : 0, failed = become_user();

	if (failed)
		return failed;
	if (!entered)
		err = unshare(kinds | CLONE_NEWUSER) ? -errno : empty_root();
	else if (!geteuid() && unshare(CLONE_NEWUSER))
		log_debug("no user namespace of its own: %s", strerror(errno));
	if (err)
		log_debug("no namespaces of its own: %s", strerror(-err));
	return 0;
}

/* ---- Landlock ---- */

void isolate_landlock(void)
{
	uint64_t rights;
	int ruleset = confine_ruleset(3 /* bind, connect */, &rights);
	/* No rule is added: what is handled is forbidden. */
	int err = ruleset < 0 ? ruleset : confine_files(ruleset);

	if (err)
		log_debug("no Landlock: %s", strerror(-err));
}

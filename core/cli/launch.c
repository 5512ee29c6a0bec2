/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int launch_sudo_user(uid_t *uid, gid_t *gid)
{
	const char *u = getenv("SUDO_UID"), *g = getenv("SUDO_GID");
	char *end_u, *end_g;

	if (geteuid() || !u || !g || !*u || !*g)
		return 0;
	*uid = (uid_t)strtoul(u, &end_u, 10);
	*gid = (gid_t)strtoul(g, &end_g, 10);
	return !*end_u && !*end_g && *uid;
}

/* 0 or -errno. The environment stays as sudo made it, but for HOME. */
static int become_user(void)
{
	struct passwd *pw;
	uid_t uid;
	gid_t gid;

	if (!launch_sudo_user(&uid, &gid))
		return 0;
	pw = getpwuid(uid);
	if (pw ? initgroups(pw->pw_name, gid) : setgroups(1, &gid))
		return -errno;
	if (setgid(gid) || setuid(uid))
		return -errno;
	if (pw) {
		setenv("HOME", pw->pw_dir, 1);
		setenv("USER", pw->pw_name, 1);
		setenv("LOGNAME", pw->pw_name, 1);
	}
	return 0;
}

static void child(int go, int failed, char *const argv[])
{
	sigset_t none;
	char c;
	int r;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	if (read(go, &c, 1) != 1)
		_exit(127);
	r = become_user();
	if (!r) {
		execvp(argv[0], argv);
		r = -errno;
	}
	if (write(failed, &r, sizeof(r)) != sizeof(r))
		_exit(126);
	_exit(127);
}

int launch_hold(struct launch *l, char *const argv[])
{
	int go[2], failed[2], r;

	*l = (struct launch){.pid = -1, .go = -1, .failed = -1};
	if (pipe2(go, O_CLOEXEC))
		return -errno;
	if (pipe2(failed, O_CLOEXEC)) {
		r = -errno;
		close(go[0]);
		close(go[1]);
		return r;
	}
	l->pid = fork();
	r = l->pid < 0 ? -errno : 0;
	if (!l->pid) {
		close(go[1]);
		close(failed[0]);
		child(go[0], failed[1], argv);
	}
	close(go[0]);
	close(failed[1]);
	l->go = go[1];
	l->failed = failed[0];
	return r;
}

int launch_go(struct launch *l)
{
	int r = 0, err;

	if (write(l->go, "x", 1) != 1)
		r = -errno;
	/* Closed by the exec, or written to if that fails. */
	if (!r && read(l->failed, &err, sizeof(err)) == sizeof(err))
		r = err;
	close(l->go);
	close(l->failed);
	l->go = l->failed = -1;
	return r;
}

void launch_drop(struct launch *l)
{
	if (l->pid <= 0)
		return;
	close(l->go);
	close(l->failed);
	waitpid(l->pid, NULL, 0);
	l->pid = -1;
}

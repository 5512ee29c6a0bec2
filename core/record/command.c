/* SPDX-License-Identifier: Apache-2.0 */
#include "record/internal/command.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/credentials.h"
#include "base/log.h"

bool command_sudo_user(uid_t *uid, gid_t *gid)
{
	const char *u = getenv("SUDO_UID"), *g = getenv("SUDO_GID");
	char *end_u, *end_g;

	if (geteuid() || !u || !g || !*u || !*g)
		return false;
	*uid = (uid_t)strtoul(u, &end_u, 10);
	*gid = (gid_t)strtoul(g, &end_g, 10);
	return !*end_u && !*end_g && *uid;
}

int command_become_user(void)
{
	struct passwd *pw;
	uid_t uid;
	gid_t gid;

	if (!command_sudo_user(&uid, &gid))
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

static void child(const struct command *command, int go, int failed)
{
	sigset_t none;
	char c;
	int r;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	if (read(go, &c, 1) != 1)
		_exit(127);
	r = command_become_user();
	if (!r && command->stdout_to_stderr && dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		r = -errno;
	if (!r) {
		execvp(command->argv[0], command->argv);
		r = -errno;
	}
	if (write(failed, &r, sizeof(r)) != sizeof(r))
		_exit(126);
	_exit(127);
}

int command_hold(struct command *c)
{
	int go[2], failed[2], r;

	if (pipe2(go, O_CLOEXEC))
		return -errno;
	if (pipe2(failed, O_CLOEXEC)) {
		r = -errno;
		close(go[0]);
		close(go[1]);
		return r;
	}
	c->pid = fork();
	r = c->pid < 0 ? -errno : 0;
	if (!c->pid) {
		close(go[1]);
		close(failed[0]);
		child(c, go[0], failed[1]);
	}
	close(go[0]);
	close(failed[1]);
	c->go = go[1];
	c->failed = failed[0];
	return r;
}

static void close_pipes(struct command *c)
{
	if (c->go >= 0)
		close(c->go);
	if (c->failed >= 0)
		close(c->failed);
	c->go = c->failed = -1;
}

int command_start(struct command *c)
{
	int r = 0, err;

	if (write(c->go, "x", 1) != 1)
		r = -errno;
	/* The exec closes the pipe; a failed exec is written to it. */
	if (!r && read(c->failed, &err, sizeof(err)) == sizeof(err))
		r = err;
	close_pipes(c);
	c->running = !r;
	return r;
}

/* Only an end, not a stop of a thread that fusee traces, which its tracer waits for. */
static bool has_ended(const struct command *c)
{
	siginfo_t info = {.si_pid = 0};

	return !waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid &&
	       info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED;
}

bool command_reap(struct command *c)
{
	if (!c->running || !has_ended(c) || wait4(c->pid, &c->status, WNOHANG, &c->usage) != c->pid)
		return false;
	c->running = false;
	return true;
}

void command_close(struct command *c)
{
	bool held = c->go >= 0;

	close_pipes(c); /* a child that waits for its exec ends */
	if (c->running)
		log_info("'%s' is still running: waiting for its end", c->argv[0]);
	if (c->pid > 0 && (held || c->running))
		waitpid(c->pid, &c->status, 0);
	c->running = false;
	c->pid = -1;
}

int command_exit_status(const struct command *c)
{
	if (!c->argv)
		return 0;
	if (WIFSIGNALED(c->status))
		return 128 + WTERMSIG(c->status);
	return WEXITSTATUS(c->status);
}

void command_put(char *const *argv, struct buf *b)
{
	size_t from = b->len;

	for (; *argv; argv++) {
		const char *c = *argv;

		while (isalnum((unsigned char)*c) || (*c && strchr("-_./=:,+@%", *c)))
			c++;
		if (!*c && **argv) {
			buf_str(b, *argv);
		} else {
			buf_str(b, "'");
			for (c = *argv; *c; c++)
				if (*c == '\'')
					buf_str(b, "'\\''");
				else
					buf_add(b, c, 1);
			buf_str(b, "'");
		}
		buf_str(b, argv[1] ? " " : "");
	}
	if (buf_add(b, "", 1))
		return;
	credentials_hide(b->p + from);
	b->len = from + strlen(b->p + from);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "console/tool.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "console/interrupt.h"

#define OUTPUT_MAX (64u << 20) /* bytes */

extern char **environ;

/* The program has no signals blocked: Ctrl-C in a terminal ends it, too. 0 or an error number. */
static int start(pid_t *pid, char *const *argv, const posix_spawn_file_actions_t *files)
{
	posix_spawnattr_t how;
	sigset_t none;
	int r = posix_spawnattr_init(&how);

	if (r)
		return r;
	sigemptyset(&none);
	r = posix_spawnattr_setsigmask(&how, &none);
	if (!r)
		r = posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK);
	if (!r)
		r = posix_spawnp(pid, argv[0], files, &how, argv, environ);
	posix_spawnattr_destroy(&how);
	return r;
}

/* The signal is for fusee as well. */
static void end(void *arg)
{
	kill(*(pid_t *)arg, SIGTERM);
	kill(getpid(), SIGTERM);
}

/* 0 or -errno. */
static int wait_for(pid_t pid)
{
	struct interrupt *interrupt;
	siginfo_t info;
	int status, r;

	interrupt_begin(&interrupt, end, &pid);
	/* it remains a zombie, whose number no other process gets, until no signal is sent any more
	 */
	while ((r = waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT)) < 0 && errno == EINTR)
		continue;
	interrupt_end(interrupt);
	while (!r && waitpid(pid, &status, 0) < 0)
		r = errno == EINTR ? 0 : -errno;
	if (r)
		return -EIO;
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -EIO;
}

/* Runs the program from one file to another. 0 or -errno. */
static int run(char *const *argv, int in, int out)
{
	posix_spawn_file_actions_t files;
	pid_t pid;
	int r;

	r = posix_spawn_file_actions_init(&files);
	if (r)
		return -r;
	r = posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
	if (!r)
		r = posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
	if (!r)
		r = start(&pid, argv, &files);
	posix_spawn_file_actions_destroy(&files);
	return r ? -r : wait_for(pid);
}

/* Uses files in memory instead of pipes, so that neither side can block the other. */
int tool_run(char *const *argv, const struct buf *in, struct buf *out)
{
	int from = memfd_create("in", MFD_CLOEXEC), to = memfd_create("out", MFD_CLOEXEC);
	int r = from < 0 || to < 0 ? -errno : in ? buf_write(in, from) : 0;

	if (!r && lseek(from, 0, SEEK_SET) < 0)
		r = -errno;
	if (!r)
		r = run(argv, from, to);
	if (!r && lseek(to, 0, SEEK_SET) < 0)
		r = -errno;
	if (!r)
		r = buf_read_fd(out, to, OUTPUT_MAX);
	if (from >= 0)
		close(from);
	if (to >= 0)
		close(to);
	return r;
}

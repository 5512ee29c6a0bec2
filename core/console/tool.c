/* SPDX-License-Identifier: Apache-2.0 */
#include "console/tool.h"

#include <errno.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUTPUT_MAX (64u << 20) /* bytes */

extern char **environ;

/* Runs the program from one file to another. 0 or -errno. */
static int run(char *const *argv, int in, int out)
{
	posix_spawn_file_actions_t files;
	int status, r;
	pid_t pid;

	r = posix_spawn_file_actions_init(&files);
	if (r)
		return -r;
	r = posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
	if (!r)
		r = posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
	if (!r)
		r = posix_spawnp(&pid, argv[0], &files, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	if (r)
		return -r;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -EIO;
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

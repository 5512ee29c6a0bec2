/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/graphviz.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PICTURE_MAX (64u << 20) /* bytes */

extern char **environ;

const char *graphviz_format(const char *path)
{
	static const char *const formats[] = {"svg", "png", "pdf", "dot"};
	const char *ending = strrchr(path, '.');

	if (!strcmp(path, "-"))
		return "dot";
	for (size_t i = 0; ending && i < sizeof(formats) / sizeof(formats[0]); i++)
		if (!strcmp(ending + 1, formats[i]))
			return formats[i];
	return NULL;
}

/* Runs dot from one file to another. 0 or -errno. */
static int run_dot(const char *format, int in, int out)
{
	char type[16];
	char *argv[] = {(char[]){"dot"}, type, NULL};
	posix_spawn_file_actions_t files;
	int status, r;
	pid_t pid;

	snprintf(type, sizeof(type), "-T%s", format);
	r = posix_spawn_file_actions_init(&files);
	if (r)
		return -r;
	r = posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
	if (!r)
		r = posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
	if (!r)
		r = posix_spawnp(&pid, "dot", &files, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	if (r)
		return -r;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -EIO;
}

int graphviz_draw(struct buf *graph, const char *format)
{
	int in = memfd_create("graph", MFD_CLOEXEC), out = memfd_create("picture", MFD_CLOEXEC);
	int r = in < 0 || out < 0 ? -errno : buf_write(graph, in);

	if (!r && lseek(in, 0, SEEK_SET) < 0)
		r = -errno;
	if (!r)
		r = run_dot(format, in, out);
	if (!r && lseek(out, 0, SEEK_SET) < 0)
		r = -errno;
	if (!r) {
		buf_reset(graph);
		r = buf_read_fd(graph, out, PICTURE_MAX);
	}
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	return r;
}

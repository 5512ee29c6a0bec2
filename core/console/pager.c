/* SPDX-License-Identifier: Apache-2.0 */
#include "console/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int lines(const struct buf *b)
{
	int n = 0;

	for (size_t i = 0; i < b->len; i++)
		n += b->p[i] == '\n';
	return n;
}

/* pager is a command line of the shell. -ENOENT: the shell found no such program and printed an
 * error. */
static int through(const char *pager, const struct buf *b)
{
	int p[2], r, status = 0;
	pid_t pid;

	if (pipe2(p, O_CLOEXEC))
		return -errno;
	signal(SIGINT, SIG_IGN); /* Ctrl-C is for the pager while it runs */
	pid = fork();
	if (pid < 0) {
		close(p[0]);
		close(p[1]);
		return -errno;
	}
	if (!pid) {
		dup2(p[0], STDIN_FILENO);
		setenv("LESS", "FRX", 0);
		signal(SIGPIPE, SIG_DFL);
		signal(SIGINT, SIG_DFL);
		execl("/bin/sh", "sh", "-c", pager, (char *)NULL);
		_exit(127);
	}
	close(p[0]);
	r = buf_write(b, p[1]);
	close(p[1]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return -ENOENT;
	return r;
}

/* Chooses as git does: an empty $PAGER or "cat" means no pager (NULL). */
static const char *chosen(void)
{
	const char *pager = getenv("PAGER");

	if (!pager)
		return "less";
	return *pager && strcmp(pager, "cat") != 0 ? pager : NULL;
}

int pager_write(const struct buf *b)
{
	const char *pager = chosen();
	struct winsize w;
	int r;

	signal(SIGPIPE, SIG_IGN);
	if (!pager || !isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) ||
	    lines(b) < w.ws_row)
		return buf_write(b, STDOUT_FILENO);
	r = through(pager, b);
	return r == -ENOENT ? buf_write(b, STDOUT_FILENO) : r;
}

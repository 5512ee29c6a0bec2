/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/pager.h"

#include <errno.h>
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

/* $PAGER is a shell's command line, as everywhere. */
static int through(const char *pager, const struct buf *b)
{
	int p[2], r, status;
	pid_t pid;

	if (pipe(p))
		return -errno;
	pid = fork();
	if (pid < 0) {
		close(p[0]);
		close(p[1]);
		return -errno;
	}
	if (!pid) {
		dup2(p[0], STDIN_FILENO);
		close(p[0]);
		close(p[1]);
		setenv("LESS", "FRX", 0);
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

int pager_write(const struct buf *b)
{
	const char *pager = getenv("PAGER");
	struct winsize w;
	int r;

	signal(SIGPIPE, SIG_IGN);
	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) || lines(b) < w.ws_row)
		return buf_write(b, STDOUT_FILENO);
	r = through(pager && *pager ? pager : "less", b);
	return r == -ENOENT ? buf_write(b, STDOUT_FILENO) : r;
}

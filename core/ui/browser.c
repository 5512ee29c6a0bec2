/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/internal/browser.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_set(const char *name)
{
	const char *value = getenv(name);

	return value && *value;
}

/* Under sudo the desktop is that of the user who called it; a browser must not run as root. */
static bool has_desktop(void)
{
	return (is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")) &&
	       !(!geteuid() && is_set("SUDO_UID"));
}

static void child(const char *address)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	for (int to = 0; fd >= 0 && to < 3; to++)
		dup2(fd, to);
	if (fork() == 0)
		execlp("xdg-open", "xdg-open", address, (char *)NULL);
	_exit(0); /* init waits for the browser */
}

int browser_open(const char *address)
{
	pid_t pid;

	if (!has_desktop())
		return -ENOTSUP;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (!pid)
		child(address);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}

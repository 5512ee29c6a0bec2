// SPDX-License-Identifier: Apache-2.0
#include "sandbox/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The variables that the worker gets: none that makes a library look for files or servers. */
static bool is_passed_on(const char *variable)
{
	static const char *const names[] = {"FUSEE_DEBUG=", "LD_LIBRARY_PATH=", "ASAN_OPTIONS=",
					    "UBSAN_OPTIONS=", "TSAN_OPTIONS="};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strncmp(variable, names[i], strlen(names[i])))
			return true;
	return false;
}

static char **environment(void)
{
	size_t n = 0, kept = 0;
	char **env;

	while (environ && environ[n])
		n++;
	env = calloc(n + 1, sizeof(*env));
	for (size_t i = 0; env && i < n; i++)
		if (is_passed_on(environ[i]))
			env[kept++] = environ[i];
	return env;
}

/* Moves the descriptors to their places and closes all others. Both may have any number: a copy
 * above the places keeps them apart. */
static bool place_files(int sock, int err_fd)
{
	int from = fcntl(sock, F_DUPFD, SPAWN_FD + 1), to = fcntl(err_fd, F_DUPFD, SPAWN_FD + 1);

	return from >= 0 && to >= 0 && dup2(from, SPAWN_FD) >= 0 && dup2(to, STDERR_FILENO) >= 0 &&
	       dup2(open("/dev/null", O_RDONLY), 0) == 0 &&
	       dup2(open("/dev/null", O_WRONLY), 1) == 1 && !close_range(SPAWN_FD + 1, ~0u, 0);
}

/* In the child. A session of its own keeps Ctrl-C and the terminal from it. */
static void execute(int sock, int err_fd, char *const argv[], char *const env[])
{
	sigset_t none;

	setsid();
	for (int i = 1; i < NSIG; i++)
		signal(i, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (place_files(sock, err_fd))
		execve("/proc/self/exe", argv, env);
	_exit(127);
}

/* By fork(), as posix_spawn() waits until the child has executed the program, which waits for
 * whatever that takes. */
int spawn_self(pid_t *pid, int *sock, int err_fd, char *const argv[])
{
	char **env = environment();
	pid_t child;
	int pair[2], err;

	if (!env || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
		err = env ? -errno : -ENOMEM;
		free(env);
		return err;
	}
	child = fork();
	if (!child)
		execute(pair[1], err_fd, argv, env);
	err = child < 0 ? -errno : 0;
	free(env);
	close(pair[1]);
	if (err) {
		close(pair[0]);
		return err;
	}
	*pid = child;
	*sock = pair[0];
	return 0;
}

int spawn_watched(pid_t *pid, int *sock, int *pidfd, char *const argv[])
{
	int err = spawn_self(pid, sock, STDERR_FILENO, argv);

	if (err)
		return err;
	*pidfd = (int)syscall(SYS_pidfd_open, *pid, 0);
	if (*pidfd >= 0)
		return 0;
	err = -errno;
	kill(*pid, SIGKILL);
	waitpid(*pid, NULL, 0); /* it has opened nothing yet */
	close(*sock);
	return err;
}

uint64_t spawn_cpu_ns(pid_t pid)
{
	struct timespec t;
	clockid_t clock;

	if (!pid || clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t))
		return 0;
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "dump/internal/guarded.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define LOOK_MS 100
#define DEATH_MS 500 /* the time for a killed process to end, which the kernel may prevent */

struct guarded {
	pid_t pid;
	int pidfd, errors; /* errors: the end of the child's standard error that is read */
};

static _Noreturn void child(int (*work)(void *), void *arg, int out, int errors, pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent ||
	    dup2(out, STDOUT_FILENO) < 0 || dup2(errors, STDERR_FILENO) < 0)
		_exit(EXIT_FAILURE);
	exit(work(arg));
}

static int start(struct guarded *g, int (*work)(void *), void *arg, int out)
{
	pid_t parent = getpid();
	int ends[2], err;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	g->errors = ends[0];
	g->pid = fork();
	if (!g->pid)
		child(work, arg, out, ends[1], parent);
	err = g->pid < 0 ? -errno : 0;
	close(ends[1]);
	if (!err) {
		g->pidfd = (int)syscall(SYS_pidfd_open, g->pid, 0);
		err = g->pidfd < 0 ? -errno : 0;
		if (err) {
			kill(g->pid, SIGKILL);
			waitpid(g->pid, NULL, 0); /* it has not touched a target yet, so it ends */
		}
	}
	if (err)
		close(g->errors);
	return err;
}

/* Copies what the child wrote and waits for more, or for its end. true: it has ended. */
static bool attend(struct guarded *g, int ms)
{
	struct pollfd p[2] = {{.fd = g->errors, .events = POLLIN},
			      {.fd = g->pidfd, .events = POLLIN}};
	char text[4096];
	ssize_t n;

	if (poll(p, 2, ms) <= 0)
		return false;
	while (p[0].revents & POLLIN && (n = read(g->errors, text, sizeof(text))) > 0) {
		if (write(STDERR_FILENO, text, (size_t)n) < 0)
			break;
		if (poll(p, 1, 0) != 1)
			break;
	}
	/* Processes that the child started may still hold the other end. */
	if (p[0].revents && !(p[0].revents & POLLIN)) {
		close(g->errors);
		g->errors = -1;
	}
	return p[1].revents && !(p[0].revents & POLLIN);
}

/* 0: it has ended; -ETIMEDOUT: it was killed. */
static int wait_for(struct guarded *g, const _Atomic uint32_t *beats, uint64_t patience_ns)
{
	uint64_t since = clock_now();
	uint32_t last = atomic_load(beats);

	while (!attend(g, LOOK_MS)) {
		uint32_t beat = atomic_load(beats);

		if (beat != last) {
			last = beat;
			since = clock_now();
		} else if (clock_now() - since > patience_ns) {
			kill(g->pid, SIGKILL);
			for (int ms = 0; ms < DEATH_MS && !attend(g, LOOK_MS); ms += LOOK_MS)
				;
			return -ETIMEDOUT;
		}
	}
	return 0;
}

int guarded_run(int (*work)(void *), void *arg, int out, const _Atomic uint32_t *beats,
		uint64_t patience_ns)
{
	struct guarded g = {0};
	int status = 0, r = start(&g, work, arg, out);

	if (r)
		return r;
	r = wait_for(&g, beats, patience_ns);
	waitpid(g.pid, &status, WNOHANG);
	close(g.pidfd);
	if (g.errors >= 0)
		close(g.errors);
	if (r)
		return r;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -ECHILD;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/loader.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "sandbox/spawn.h"

#define SECONDS 60 /* time limit; the work takes 0.2 s */
#define POLL_NS 1000000u
#define STUCK_NS 2000000000ull /* without CPU time */
#define POLLS 500              /* for the end of a killed child: it may be stuck in the kernel */

/* A child that ended without a result has crashed. */
struct loader_result {
	int r; /* of work(); 1: none yet */
	char why[512];
};

/*
 * ---- the child ----
 *
 * It has only the thread that forked it. glibc makes it safe for it to allocate and print; it
 * takes no other lock.
 */

/* The child ends when its parent does, after the time limit, without a core file and without a
 * signal handler of the parent. */
static void prepare(pid_t parent)
{
	static const int deadly[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM};
	const struct rlimit none = {0};
	sigset_t all;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	for (size_t i = 0; i < sizeof(deadly) / sizeof(*deadly); i++)
		signal(deadly[i], SIG_DFL);
	sigemptyset(&all);
	for (size_t i = 0; i < sizeof(deadly) / sizeof(*deadly); i++)
		sigaddset(&all, deadly[i]);
	sigprocmask(SIG_UNBLOCK, &all, NULL);
	setrlimit(RLIMIT_CORE, &none);
	alarm(SECONDS);
}

/* Closes all descriptors but the first three and keep[n]: sockets, rings and events would stay open
 * as long as the child runs. 0 or -errno. */
static int close_others(const int *keep, uint32_t n)
{
	unsigned int from = STDERR_FILENO + 1;

	for (;;) {
		unsigned int next = ~0u;

		for (uint32_t i = 0; i < n; i++)
			if (keep[i] >= (int)from && (unsigned int)keep[i] < next)
				next = (unsigned int)keep[i];
		if (next > from && close_range(from, next - (next != ~0u), 0))
			return -errno;
		if (next == ~0u)
			return 0;
		from = next + 1;
	}
}

/* ---- the parent ---- */

int loader_start(struct loader *c, const char *what, int (*work)(void *arg, char *why, size_t len),
		 void *arg, const int *keep, uint32_t n)
{
	pid_t self = getpid();
	int r;

	*c = (struct loader){.until = clock_now() + (SECONDS + 1) * 1000000000ull, .what = what};
	c->result = mmap(NULL, sizeof(*c->result), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (c->result == MAP_FAILED)
		return -errno;
	c->result->r = 1;
	c->pid = fork();
	if (!c->pid) {
		prepare(self);
		r = close_others(keep, n);
		if (!r)
			r = work(arg, c->result->why, sizeof(c->result->why));
		c->result->r = r < 0 ? r : 0;
		_exit(0);
	}
	if (c->pid > 0)
		return 0;
	r = -errno;
	c->pid = 0;
	munmap(c->result, sizeof(*c->result));
	return r;
}

/* Kills the child and waits a moment, so that it leaves no zombie. */
static void reap(pid_t pid)
{
	const struct timespec pause = {.tv_nsec = POLL_NS};

	kill(pid, SIGKILL);
	for (int i = 0; i < POLLS && !waitpid(pid, NULL, WNOHANG); i++)
		nanosleep(&pause, NULL);
}

static void release(struct loader *c)
{
	munmap(c->result, sizeof(*c->result));
	c->pid = 0;
}

/* Describes how a child without a result ended. */
static int describe(const struct loader *c, bool late, int status, char **why)
{
	int r;

	late |= WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
	if (late)
		r = asprintf(why, "%s did not end within %d s", c->what, SECONDS);
	else if (WIFSIGNALED(status))
		r = asprintf(why, "%s was ended by signal %d (%s)", c->what, WTERMSIG(status),
			     strsignal(WTERMSIG(status)));
	else
		r = asprintf(why, "%s ended without a result", c->what);
	if (r < 0)
		*why = NULL;
	return late ? -ETIMEDOUT : -EFAULT;
}

int loader_poll(struct loader *c, char **why)
{
	int status = 0, r;
	bool late = false;
	pid_t got = waitpid(c->pid, &status, WNOHANG);

	*why = NULL;
	if (!got || (got < 0 && errno == EINTR)) {
		late = clock_now() >= c->until;
		if (!late)
			return -EINPROGRESS;
		reap(c->pid);
	}
	/* If waitpid() failed, the status is 0. */
	r = c->result->r <= 0 ? c->result->r : describe(c, late, status, why);
	c->result->why[sizeof(c->result->why) - 1] = 0;
	if (r && !*why && *c->result->why)
		*why = strdup(c->result->why);
	release(c);
	return r;
}

int loader_wait(struct loader *c, char **why)
{
	const struct timespec pause = {.tv_nsec = POLL_NS};
	int r;

	while ((r = loader_poll(c, why)) == -EINPROGRESS)
		nanosleep(&pause, NULL);
	return r;
}

static void kill_stuck(struct loader *c)
{
	uint64_t used = spawn_cpu_ns(c->pid), now = clock_now();

	if (used != c->used_ns || !c->moved_ns)
		c->moved_ns = now;
	c->used_ns = used;
	if (c->stuck || now - c->moved_ns < STUCK_NS)
		return;
	c->stuck = true;
	kill(c->pid, SIGKILL);
	c->until = UINT64_MAX; /* the kernel may keep it */
}

int loader_poll_stuck(struct loader *c, char **why)
{
	int r = loader_poll(c, why);

	if (r == -EINPROGRESS)
		kill_stuck(c);
	return r && r != -EINPROGRESS && c->stuck ? -ETIMEDOUT : r;
}

void loader_end(struct loader *c)
{
	if (!c->pid)
		return;
	reap(c->pid);
	release(c);
}

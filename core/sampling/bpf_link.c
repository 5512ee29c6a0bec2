/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/bpf_link.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECONDS 60   /* it takes 10 ms */
#define ATTEMPTS 3   /* what crashes may lack memory, as may what says so */
#define PAUSE_MS 100 /* before the second, twice as long before the third */

/* What the child and its parent share; a child that is gone before it wrote it has crashed. */
struct outcome {
	int result;
};

/* ---- the child ---- */

static int add_part(struct bpf_linker *linker, const struct bpf_link_part *part)
{
	size_t len = (size_t)((const char *)part->to - (const char *)part->from);
	int fd = memfd_create(part->name, MFD_CLOEXEC), r;
	char path[64];

	if (fd < 0)
		return -errno;
	r = write(fd, part->from, len) == (ssize_t)len ? 0 : -ENOSPC;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!r)
		r = bpf_linker__add_file(linker, path, NULL);
	close(fd);
	return r;
}

static int join(const struct bpf_link_part *parts, uint32_t n, int out)
{
	struct bpf_linker *linker;
	char path[64];
	int r = 0;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", out);
	linker = bpf_linker__new(path, NULL);
	if (!linker)
		return errno ? -errno : -EINVAL;
	for (uint32_t i = 0; !r && i < n; i++)
		r = add_part(linker, &parts[i]);
	if (!r)
		r = bpf_linker__finalize(linker);
	bpf_linker__free(linker);
	return r;
}

/* It ends with us, after a time, without a core file, and by no handler of ours. */
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

/* ---- the parent ---- */

/* How it ended where it did not say: a status that nobody could wait for counts as a crash too. */
static int describe(int status, char **why)
{
	int r;

	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		r = asprintf(why, "linking them comes to no end in %d s", SECONDS);
	else if (WIFSIGNALED(status))
		r = asprintf(why, "linking them was ended by signal %d (%s)", WTERMSIG(status),
			     strsignal(WTERMSIG(status)));
	else
		r = asprintf(why, "linking them ended without a word");
	if (r < 0)
		*why = NULL;
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? -ETIMEDOUT : -EFAULT;
}

static int attempt(const struct bpf_link_part *parts, uint32_t n, struct outcome *shared, int out,
		   char **why)
{
	pid_t self = getpid(), pid;
	int status = 0;

	shared->result = 1;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (!pid) {
		prepare(self);
		shared->result = join(parts, n, out);
		_exit(0);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			break;
	return shared->result <= 0 ? shared->result : describe(status, why);
}

static void pause_before(uint32_t nth)
{
	const struct timespec t = {.tv_nsec = PAUSE_MS * 1000000l * nth};

	nanosleep(&t, NULL);
}

int bpf_link_parts(const struct bpf_link_part *parts, uint32_t n, int *ret, char **why)
{
	struct outcome *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int out = -1, r = -ENOMEM;

	*why = NULL;
	if (shared == MAP_FAILED)
		return -errno;
	for (uint32_t i = 0; i < ATTEMPTS && (r == -ENOMEM || r == -EFAULT); i++) {
		if (i)
			pause_before(i);
		if (out >= 0)
			close(out);
		free(*why);
		*why = NULL;
		out = memfd_create("sampler", MFD_CLOEXEC);
		r = out < 0 ? -errno : attempt(parts, n, shared, out, why);
	}
	munmap(shared, sizeof(*shared));
	if (r && out >= 0)
		close(out);
	else if (!r)
		*ret = out;
	if (r && !*why && asprintf(why, "its parts cannot be linked: %s", strerror(-r)) < 0)
		*why = NULL;
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/sandbox
/* However a child ends, or does not, there is one answer, and nothing of it remains. */
#include "sandbox/loader.h"

#include <dirent.h>
#include <sys/resource.h>

#include "test.h"

/* What the work is to do. */
enum deed { SUCCEED, FAIL, SAY, SAY_MUCH, CRASH, LEAVE, STOP, LOOK };

struct job {
	enum deed deed;
	int kept, closed[3];
};

/* Only what was kept is open. */
static bool is_alone(const struct job *j)
{
	struct stat st;
	DIR *d = opendir("/proc/self/fd");
	uint32_t n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	for (int i = 0; i < 3; i++)
		if (!fstat(j->closed[i], &st))
			return false;
	return n == 2 + 3 + 1 + 1 && !fstat(j->kept, &st); /* dots, the first, the folder, it */
}

static int work(void *arg, char *why, size_t len)
{
	const struct job *j = arg;

	switch (j->deed) {
	case SUCCEED:
		return 0;
	case FAIL:
		return -EPERM;
	case SAY:
		snprintf(why, len, "it is not to be");
		return -EPERM;
	case SAY_MUCH:
		memset(why, 'x', len);
		return -EPERM;
	case CRASH:
		raise(SIGSEGV);
		return 0;
	case LEAVE:
		_exit(0);
	case STOP:
		raise(SIGSTOP);
		return 0;
	default:
		return is_alone(j) ? 0 : -EBADF;
	}
}

static bool has_children(void)
{
	return waitpid(-1, NULL, WNOHANG) >= 0 || errno != ECHILD;
}

static int do_deed(enum deed deed, char **why)
{
	struct job j = {.deed = deed};
	struct loader c;

	CHECK_INT(loader_start(&c, "doing it", work, &j, NULL, 0), 0);
	return loader_wait(&c, why);
}

static void check_deed(enum deed deed, int result, const char *sentence)
{
	char *why;

	CHECK_INT(do_deed(deed, &why), result);
	CHECK(!why == !sentence);
	if (sentence)
		CHECK_STR(why, sentence);
	free(why);
	CHECK(!has_children());
}

TEST(each_end_has_an_answer)
{
	char *why;

	signal(SIGSEGV, SIG_IGN); /* what is ours is not the child's */
	check_deed(SUCCEED, 0, NULL);
	check_deed(FAIL, -EPERM, NULL);
	check_deed(SAY, -EPERM, "it is not to be");
	check_deed(CRASH, -EFAULT, "doing it was ended by signal 11 (Segmentation fault)");
	check_deed(LEAVE, -EFAULT, "doing it ended without a result");
	CHECK_INT(do_deed(SAY_MUCH, &why), -EPERM);
	CHECK(strlen(why) > 100 && strlen(why) < 4096);
	free(why);
}

/* Where nobody is to wait for children the kernel does not say how one ended. */
TEST(ends_that_nobody_can_wait_for)
{
	signal(SIGCHLD, SIG_IGN);
	check_deed(SUCCEED, 0, NULL);
	check_deed(SAY, -EPERM, "it is not to be");
	check_deed(CRASH, -EFAULT, "doing it ended without a result");
}

/* The child stops itself, and is waited for until it has. */
static void start_stopped(struct loader *c, struct job *j)
{
	siginfo_t info;

	*j = (struct job){.deed = STOP};
	CHECK_INT(loader_start(c, "doing it", work, j, NULL, 0), 0);
	CHECK_INT(waitid(P_PID, (id_t)c->pid, &info, WSTOPPED | WNOWAIT), 0);
}

TEST(nobody_waits_for_one_that_hangs)
{
	struct loader c;
	struct job j;
	char *why;

	start_stopped(&c, &j);
	CHECK_INT(loader_poll(&c, &why), -EINPROGRESS);
	CHECK(c.pid && !why);
	kill(c.pid, SIGCONT);
	CHECK_INT(loader_wait(&c, &why), 0);
	CHECK(!c.pid && !has_children());

	start_stopped(&c, &j);
	loader_end(&c);
	CHECK(!c.pid && !has_children());
	loader_end(&c); /* there is none */
}

TEST(a_time_limit)
{
	struct loader c;
	struct job j;
	char *why;

	start_stopped(&c, &j);
	c.until = 1;
	CHECK_INT(loader_poll(&c, &why), -ETIMEDOUT);
	CHECK_STR(why, "doing it did not end within 60 s");
	free(why);
	CHECK(!c.pid && !has_children());

	start_stopped(&c, &j);
	kill(c.pid, SIGALRM); /* its own clock */
	kill(c.pid, SIGCONT);
	CHECK_INT(loader_wait(&c, &why), -ETIMEDOUT);
	CHECK_STR(why, "doing it did not end within 60 s");
	free(why);
}

/* Below, between and above what it keeps. */
TEST(it_has_no_descriptors_of_ours)
{
	struct job j = {.deed = LOOK};
	struct loader c;
	int pair[2], keep[3];
	char *why;

	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	j.kept = open("/dev/null", O_RDONLY);
	j.closed[0] = pair[0];
	j.closed[1] = pair[1];
	j.closed[2] = fcntl(j.kept, F_DUPFD, 1000);
	CHECK(j.kept > pair[1] && j.closed[2] >= 1000);
	keep[0] = j.kept;
	keep[1] = -1;
	keep[2] = 1;
	for (uint32_t n = 1; n <= 3; n += 2) {
		CHECK_INT(loader_start(&c, "doing it", work, &j, keep, n), 0);
		CHECK_INT(loader_wait(&c, &why), 0);
	}
}

TEST(there_is_no_room_for_one)
{
	const struct rlimit none = {0}, three = {3, 3};
	struct job j = {.deed = SUCCEED};
	struct loader c;
	char *why;

	CHECK_INT(setrlimit(RLIMIT_NOFILE, &three), 0);
	CHECK_INT(loader_start(&c, "doing it", work, &j, NULL, 0), 0);
	CHECK_INT(loader_wait(&c, &why), 0);
	if (!geteuid())
		CHECK_INT(setuid(65534), 0);
	CHECK_INT(setrlimit(RLIMIT_NPROC, &none), 0);
	CHECK_INT(loader_start(&c, "doing it", work, &j, NULL, 0), -EAGAIN);
	CHECK(!c.pid);
	loader_end(&c);
	_exit(0); /* a sanitizer needs a process to look for leaks */
}

/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/record
/* A command is stopped at its entry point, and goes on whatever happens. */
#include "record/internal/entry.h"

#include "test.h"

struct counts {
	int ready, go_on;
};

static void count_ready(void *arg)
{
	((struct counts *)arg)->ready++;
}

static void count_go_on(void *arg)
{
	((struct counts *)arg)->go_on++;
}

static const struct entry_calls calls = {count_ready, count_go_on};

/* A child that executes true(1) once a byte comes. */
static pid_t start(int *go)
{
	int pair[2];
	pid_t pid;
	char c;

	CHECK_INT(pipe2(pair, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		close(pair[1]);
		if (read(pair[0], &c, 1) == 1)
			execlp("true", "true", NULL);
		_exit(127);
	}
	close(pair[0]);
	*go = pair[1];
	return pid;
}

static int status_of(pid_t pid)
{
	int status;

	CHECK_INT(waitpid(pid, &status, 0), pid);
	return status;
}

TEST(both_stops)
{
	struct counts n = {0};
	int go;
	pid_t pid = start(&go);
	bool traced;

	if (!entry_seize(pid))
		SKIP("no CAP_SYS_PTRACE");
	CHECK_INT(write(go, "x", 1), 1);
	CHECK(entry_pass(pid, &calls, &n, &traced));
	CHECK(!traced && n.ready == 2 && n.go_on == 1);
	CHECK_INT(status_of(pid), 0);
}

/* The exec comes after the time limit: the stop has nobody who waits for it. */
TEST(one_that_stops_late)
{
	struct counts n = {0};
	int go;
	pid_t pid = start(&go);
	bool traced;

	if (!entry_seize(pid))
		SKIP("no CAP_SYS_PTRACE");
	CHECK(!entry_pass(pid, &calls, &n, &traced));
	CHECK(traced && !n.ready);
	CHECK(!entry_release(pid));
	CHECK_INT(write(go, "x", 1), 1);
	WAIT_FOR(entry_release(pid));
	CHECK_INT(status_of(pid), 0);
}

TEST(one_that_ends)
{
	struct counts n = {0};
	int go;
	pid_t pid = start(&go);
	bool traced;

	if (!entry_seize(pid))
		SKIP("no CAP_SYS_PTRACE");
	close(go);
	CHECK(!entry_pass(pid, &calls, &n, &traced));
	CHECK(!n.ready && entry_release(pid));
	CHECK_INT(WEXITSTATUS(status_of(pid)), 127);
}

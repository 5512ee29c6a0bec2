/* SPDX-License-Identifier: Apache-2.0 */
/* Mappings of processes of the test's own, compared with what procfs_each_mapping() says of them,
 * and requests for processes that keep the reader waiting or that do not exist. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/maps_reader.h"
#include "test.h"

#define PAGE 4096u

static struct maps_answer *next(struct maps_reader *r)
{
	struct pollfd p = {.fd = maps_reader_fd(r), .events = POLLIN};

	for (;;) {
		struct maps_answer *a = maps_reader_take(r);

		if (a)
			return a;
		CHECK(poll(&p, 1, 20000) == 1);
	}
}

struct compared {
	const struct maps_answer *a;
	uint32_t n;
	bool differs;
};

static int compare(void *arg, const struct procfs_mapping *m)
{
	struct compared *c = arg;
	const struct procfs_mapping *got = c->n < c->a->n ? &c->a->mappings[c->n] : NULL;

	c->n++;
	c->differs |= !got || got->lo != m->lo || got->hi != m->hi || got->offset != m->offset ||
		      got->ino != m->ino || strcmp(got->name, m->name);
	return 0;
}

/* A child with this many executable mappings that are not neighbours. */
static pid_t child_with(int mappings)
{
	int ready[2];
	pid_t pid;
	char c;

	CHECK_INT(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (int i = 0; i < mappings; i++) {
			char *p = mmap(NULL, 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
				       0);

			if (p == MAP_FAILED || mprotect(p, PAGE, PROT_READ | PROT_EXEC))
				_exit(1);
		}
		(void)!write(ready[1], "", 1);
		pause();
		_exit(0);
	}
	close(ready[1]);
	CHECK_INT(read(ready[0], &c, 1), 1);
	close(ready[0]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

TEST(what_is_read_is_what_proc_says)
{
	struct maps_reader *r;
	pid_t pid = child_with(700);
	struct maps_answer *a;
	struct compared c = {0};
	char exe[4096] = "";

	CHECK_INT(maps_reader_new(&r, 16384), 0);
	CHECK(!maps_reader_take(r));
	CHECK_INT(maps_reader_request(r, pid, 77), 0);
	CHECK(maps_reader_pending(r) <= 1);
	a = next(r);
	CHECK(a->pid == pid && a->id == 77 && !a->err && a->n > 700);
	c.a = a;
	CHECK_INT(procfs_each_mapping(pid, compare, &c), 0);
	CHECK(!c.differs && c.n == a->n);
	CHECK(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	CHECK_STR(a->exe, exe);
	CHECK(a->nthreads && a->threads[0].tid == pid); /* a sanitizer has threads of its own */
	CHECK_STR(a->threads[0].comm, a->comm);
	CHECK_INT(maps_reader_pending(r), 0);
	maps_answer_free(a);
	maps_reader_free(r);
	end(pid);
}

TEST(a_process_with_too_many_is_given_up)
{
	struct maps_reader *r;
	pid_t pid = child_with(300);
	struct maps_answer *a;

	CHECK_INT(maps_reader_new(&r, 100), 0);
	CHECK_INT(maps_reader_request(r, pid, 1), 0);
	a = next(r);
	CHECK(a->err == -E2BIG && a->n == 100);
	maps_answer_free(a);
	maps_reader_free(r);
	end(pid);
}

TEST(processes_that_ended_and_many_requests)
{
	struct maps_reader *r;
	pid_t pid = child_with(1);
	uint32_t ok = 0, ended = 0;

	CHECK_INT(maps_reader_new(&r, 16384), 0);
	end(pid);
	for (uint64_t i = 0; i < 200; i++)
		CHECK_INT(maps_reader_request(r, i % 2 ? pid : getpid(), i), 0);
	for (uint64_t i = 0; i < 200; i++) {
		struct maps_answer *a = next(r);

		CHECK(a->pid == (a->id % 2 ? pid : getpid()));
		ok += !a->err && a->n;
		ended += a->err == -ESRCH;
		maps_answer_free(a);
	}
	CHECK(ok == 100 && ended == 100);
	/* requests, and answers without a taker, are freed with it */
	for (uint64_t i = 0; i < 200; i++)
		CHECK_INT(maps_reader_request(r, getpid(), i), 0);
	maps_reader_free(r);
}

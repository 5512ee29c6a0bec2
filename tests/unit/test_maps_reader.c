/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/process
/* Mappings of processes of the test's own, compared with what procfs_each_mapping() says of them,
 * and requests for processes that keep the reader waiting or that do not exist. */
#include <poll.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "process/maps_reader.h"
#include "lib/pause.h"
#include "test.h"

#define PAGE 4096u

static struct maps_answer *next(struct maps_reader *r)
{
	struct pollfd p = {.fd = maps_reader_fd(r), .events = POLLIN};

	for (;;) {
		struct maps_answer *a = maps_reader_take(r);

		if (a)
			return a;
		CHECK(poll(&p, 1, (int)test_within(20) * 1000) == 1);
	}
}

struct compared {
	const struct maps_answer *a;
	uint32_t n;
	bool differs;
};

static bool is_same(const struct procfs_mapping *a, const struct procfs_mapping *b)
{
	if (!a || !b)
		return a == b;
	return a->lo == b->lo && a->hi == b->hi && a->offset == b->offset && a->ino == b->ino &&
	       !strcmp(a->name, b->name);
}

static int compare(void *arg, const struct procfs_mapping *m)
{
	struct compared *c = arg;
	const struct procfs_mapping *got;

	while (c->n < c->a->n && c->a->mappings[c->n].beside)
		c->n++;
	got = c->n < c->a->n ? &c->a->mappings[c->n] : NULL;
	c->n++;
	c->differs |= !got || !is_same(got, m) || !is_same(got->below, m->below) ||
		      !is_same(got->above, m->above);
	return 0;
}

static uint32_t code_of(const struct maps_answer *a)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < a->n; i++)
		n += !a->mappings[i].beside;
	return n;
}

/* The code that begins there. */
static const struct procfs_mapping *around(const struct maps_answer *a, const void *at)
{
	for (uint32_t i = 0; i < a->n; i++)
		if (a->mappings[i].lo == (uintptr_t)at && !a->mappings[i].beside)
			return &a->mappings[i];
	return NULL;
}

static void map_at(char *at, uint32_t page, int fd, int prot, int flags)
{
	CHECK(mmap(at + page * PAGE, PAGE, prot, flags | MAP_PRIVATE | MAP_FIXED, fd,
		   fd < 0 ? 0 : page * PAGE) == at + page * PAGE);
}

/* What is beside memory with code is there, executable or not, if it is of a file. */
TEST(the_mappings_beside_memory)
{
	char *at = mmap(NULL, 8 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const int rx = PROT_READ | PROT_EXEC, fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const struct procfs_mapping *first, *second, *third;
	struct maps_reader *r;
	struct maps_answer *a;
	struct compared c = {0};

	CHECK(fd >= 0);
	map_at(at, 0, fd, PROT_READ, 0);
	map_at(at, 1, -1, rx, MAP_ANONYMOUS);
	map_at(at, 2, -1, rx | PROT_WRITE, MAP_ANONYMOUS);
	map_at(at, 3, -1, PROT_READ | PROT_WRITE, MAP_ANONYMOUS);
	map_at(at, 4, fd, PROT_READ, 0);
	map_at(at, 5, fd, rx, 0);
	map_at(at, 6, -1, rx, MAP_ANONYMOUS);
	CHECK_INT(maps_reader_new(&r, 16384), 0);
	CHECK_INT(maps_reader_request(r, getpid(), 77), 0);
	a = next(r);
	c.a = a;
	CHECK_INT(procfs_each_mapping(getpid(), compare, &c), 0);
	CHECK(!c.differs);
	first = around(a, at + PAGE);
	second = around(a, at + 2 * PAGE);
	third = around(a, at + 6 * PAGE);
	CHECK(first && first->below->lo == (uintptr_t)at && first->below->beside && !first->above);
	CHECK(second && second->below == first->below && second->above->offset == 4 * PAGE);
	CHECK(second->above->beside && strstr(second->above->name, "test_maps_reader"));
	CHECK(third && third->below->offset == 5 * PAGE && !third->below->beside);
	maps_answer_free(a);
	maps_reader_free(r);
	close(fd);
}

/* A child of that user with this many executable mappings that are not neighbours. */
static pid_t child_with(uid_t uid, int mappings)
{
	int ready[2];
	pid_t pid;
	char c;

	CHECK_INT(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		if (uid != getuid() && setresuid(uid, uid, uid))
			_exit(1);
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
	pid_t pid = child_with(getuid(), 700);
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
	pid_t pid = child_with(getuid(), 300);
	struct maps_answer *a;

	CHECK_INT(maps_reader_new(&r, 100), 0);
	CHECK_INT(maps_reader_request(r, pid, 1), 0);
	a = next(r);
	CHECK(a->err == -E2BIG && code_of(a) == 100);
	maps_answer_free(a);
	maps_reader_free(r);
	end(pid);
}

TEST(processes_that_ended_and_many_requests)
{
	struct maps_reader *r;
	pid_t pid = child_with(getuid(), 1);
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

#define OTHER_USER 61000u

/* Requests the mappings of `pid` and of `then`, and abandons the thread that reads the first, as if
 * it were stuck. The reading is done, or almost: it is tried until the thread is still at it. */
static void abandon_one(struct maps_reader *r, pid_t pid, pid_t then)
{
	for (uint64_t tries = 1;; tries++) {
		CHECK(tries < 1000);
		CHECK_INT(maps_reader_request(r, pid, tries), 0);
		CHECK_INT(maps_reader_request(r, then, 0), 0);
		pause_us(500, "so that the thread is at it, perhaps");
		if (maps_reader_abandon_stuck(r, clock_now() + 2 * MAPS_READER_STUCK_NS))
			return;
		for (int i = 0; i < 2; i++)
			maps_answer_free(next(r));
	}
}

/* A user's process keeps its thread busy, another of the user waits. The thread is replaced, only
 * the user's requests are refused, and when the thread comes back, all is as before. */
TEST(a_stuck_thread_is_replaced)
{
	const struct metric_labels *why = METRIC_LABELS(
		"reason", "another process of the user keeps its reader waiting");
	uid_t user = getuid() ? getuid() : OTHER_USER;
	pid_t slow = child_with(user, 16000), same = child_with(user, 10);
	uint32_t complete = 0, refused = 0;
	struct maps_reader *r;

	CHECK_INT(maps_reader_new(&r, 20000), 0);
	CHECK_INT(maps_reader_request(r, slow, 1), 0);
	CHECK_INT(maps_reader_abandon_stuck(r, clock_now() + 2 * MAPS_READER_STUCK_NS), 0);
	maps_answer_free(next(r)); /* nothing waited for the thread */
	abandon_one(r, slow, same);
	CHECK(metric_get("maps_readers_replaced_total", NULL) == 1);
	CHECK(metric_get("maps_readers_abandoned", NULL) == 1);
	if (maps_reader_request(r, same, 0) == -ETIMEDOUT)
		CHECK(metric_get("processes_unread_total", why) == 2);
	if (!getuid())
		CHECK_INT(maps_reader_request(r, getpid(), 0), 0);
	while (maps_reader_pending(r) || !complete) {
		struct maps_answer *a = next(r);

		complete += a->pid == slow && !a->err && a->n > 16000;
		refused += a->pid == same && a->err == -ETIMEDOUT && !a->n;
		CHECK(a->pid != getpid() || !a->err);
		maps_answer_free(a);
	}
	CHECK(complete == 1 && refused == 1);
	CHECK_INT(maps_reader_request(r, same, 0), 0);
	CHECK_INT(maps_reader_abandon_stuck(r, clock_now()), 0);
	CHECK(metric_get("maps_readers_abandoned", NULL) == 0);
	maps_reader_free(r);
	end(slow);
	end(same);
}

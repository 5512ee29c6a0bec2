/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A unit test is a program that includes this once: TEST(name) { CHECK(x); }. Each test runs in a
 * child of its own with a time limit and a folder, prints TAP ("ok 1 - name"), and the program
 * fails if one does. SKIP("reason") leaves a test. WAIT_FOR(x) waits for an event: no test sleeps
 * until something has surely happened. A failed assertion (base/assert.h) aborts. ASIDE(name) is
 * for a test that waits for seconds: it runs beside the others.
 *
 * Limits and deadlines are of a quiet machine: they are longer by what scripts/check found this
 * machine to be slower (FUSEE_CHECK_SLOWNESS).
 */
#ifndef TEST_H
#define TEST_H

/* what most tests need, too */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The functions of a test have the parameters that the tested code gives them. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define TEST_WHY 1000
#define TEST_WAIT 30 /* seconds */

struct test {
	const char *name;
	void (*run)(void);
	unsigned int seconds;
	struct test *next;
	char *why; /* "": it did not fail */
	char dir[64];
	pid_t pid; /* its child, once it has been started */
};

static struct test *test_first, **test_last = &test_first;

#define TEST_FOR(id, limit)                                                 \
	static void test_##id(void);                                        \
	__attribute__((constructor)) static void test_add_##id(void)        \
	{                                                                   \
		static struct test t = {#id, test_##id, (limit), .pid = 0}; \
		*test_last = &t;                                            \
		test_last = &t.next;                                        \
	}                                                                   \
	static void test_##id(void)
#define TEST(id) TEST_FOR(id, 60)

static const char *test_aside[16];
static int test_asides;

#define ASIDE(id)                                                      \
	__attribute__((constructor)) static void test_aside_##id(void) \
	{                                                              \
		test_aside[test_asides++] = #id;                       \
	}

/* Between two calls. */
#define TEST_BETWEEN(id, first, last)        \
	static void test_between_##id(void); \
	TEST(id)                             \
	{                                    \
		first;                       \
		test_between_##id();         \
		last;                        \
	}                                    \
	static void test_between_##id(void)

/* With what is made for it; a file names its own by this: #define TEST_OF_X(id) TEST_WITH(id, .. */
#define TEST_WITH(id, type, name, made, freed) \
	static void test_with_##id(type name); \
	TEST(id)                               \
	{                                      \
		type name = made;              \
		test_with_##id(name);          \
		freed;                         \
	}                                      \
	static void test_with_##id(type name)

/* The same in a world of its own: struct world, world_new(w, ..) and world_free(w) are the file's.
 */
#define TEST_IN_WORLD(id, ...)                     \
	static void test_in_##id(struct world *w); \
	TEST(id)                                   \
	{                                          \
		struct world w;                    \
		world_new(&w, ##__VA_ARGS__);      \
		test_in_##id(&w);                  \
		world_free(&w);                    \
	}                                          \
	static void test_in_##id(struct world *w)

/* The first reason of the running test, written by its child. */
static char *test_why;

__attribute__((noreturn, format(printf, 3, 4))) static void test_fail(const char *file, int line,
								      const char *format, ...)
{
	char text[TEST_WHY];
	int n = snprintf(text, sizeof(text), "%s:%d: ", file, line);
	va_list args;

	va_start(args, format);
	vsnprintf(text + n, sizeof(text) - (size_t)n, format, args);
	va_end(args);
	for (char *c = text; *c; c++) /* a reason is one line */
		*c = *c == '\n' ? ' ' : *c;
	if (!test_why[0])
		strcpy(test_why, text);
	exit(1);
}

#define CHECK(x)                                                           \
	do {                                                               \
		if (!(x))                                                  \
			test_fail(__FILE__, __LINE__, "not true: %s", #x); \
	} while (0)
#define CHECK_INT(a, b)                                                                         \
	do {                                                                                    \
		long long a_ = (long long)(a), b_ = (long long)(b);                             \
		if (a_ != b_)                                                                   \
			test_fail(__FILE__, __LINE__, "%s is %lld, expected %lld", #a, a_, b_); \
	} while (0)
#define CHECK_STR(a, b)                                                                         \
	do {                                                                                    \
		const char *a_ = (a), *b_ = (b);                                                \
		if (strcmp(a_, b_))                                                             \
			test_fail(__FILE__, __LINE__, "%s is '%s', expected '%s'", #a, a_, b_); \
	} while (0)
#define SKIP(reason)                                     \
	do {                                             \
		fprintf(stderr, "# skip: %s\n", reason); \
		exit(77);                                \
	} while (0)

/* The folder of the running test. */
__attribute__((unused)) static const char *test_dir(void)
{
	return getenv("TMPDIR");
}

/* So many seconds, on this machine. */
__attribute__((unused)) static unsigned int test_within(unsigned int seconds)
{
	const char *text = getenv("FUSEE_CHECK_SLOWNESS");
	double slowness = text ? atof(text) : 1;

	return slowness > 1 && slowness < 1000 ? (unsigned int)(seconds * slowness) : seconds;
}

__attribute__((unused)) static unsigned long long test_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (unsigned long long)t.tv_sec * 1000000000u + (unsigned long long)t.tv_nsec;
}

/* The time, CLOCK_MONOTONIC, at which a wait of so many seconds that begins now has failed. */
__attribute__((unused)) static unsigned long long test_deadline(unsigned int seconds)
{
	return test_now_ns() + test_within(seconds) * 1000000000ull;
}

/* Until it is so; looks each millisecond. The deadline only ends what never comes. */
#define WAIT_FOR(x)                                                                  \
	do {                                                                         \
		unsigned long long deadline_ = test_deadline(TEST_WAIT);             \
		while (!(x)) {                                                       \
			if (test_now_ns() > deadline_)                               \
				test_fail(__FILE__, __LINE__, "not within %u s: %s", \
					  test_within(TEST_WAIT), #x);               \
			nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);     \
		}                                                                    \
	} while (0)

static int test_remove(const char *path, const struct stat *st, int type, struct FTW *at)
{
	return remove(path) && 0;
}

/* Starts a test in a child whose TMPDIR is a new folder. */
static void test_start(struct test *t)
{
	const char *tmp = getenv("TMPDIR");

	t->pid = -1;
	t->why = mmap(NULL, TEST_WHY, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (t->why == MAP_FAILED)
		exit(1);
	fflush(stdout);
	snprintf(t->dir, sizeof(t->dir), "%.20s/fusee-test-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(t->dir) || chmod(t->dir, 0755)) {
		snprintf(t->why, TEST_WHY, "no folder %s: %s", t->dir, strerror(errno));
		return;
	}
	t->pid = fork();
	if (!t->pid) {
		test_why = t->why;
		setenv("TMPDIR", t->dir, 1);
		alarm(test_within(t->seconds));
		t->run();
		exit(0);
	}
}

/* 0: it passed, 77: it was skipped, else its why says what failed. Its folder is removed however it
 * ends. */
static int test_end(struct test *t)
{
	int status = 0;

	if (t->pid < 0)
		return 1;
	waitpid(t->pid, &status, 0);
	nftw(t->dir, test_remove, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	if (WIFEXITED(status) && (!WEXITSTATUS(status) || WEXITSTATUS(status) == 77))
		return WEXITSTATUS(status);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		snprintf(t->why, TEST_WHY, "not done after %u s", test_within(t->seconds));
	else if (WIFSIGNALED(status))
		snprintf(t->why, TEST_WHY, "ended by signal %d, %s", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else if (!t->why[0])
		snprintf(t->why, TEST_WHY, "exit %d", WEXITSTATUS(status));
	return 1;
}

int main(int argc, char **argv)
{
	const char *only = argc > 1 ? argv[1] : NULL;
	int n = 0, failed = 0;

	for (struct test *t = test_first; t; t = t->next)
		for (int i = 0; i < test_asides && (!only || !strcmp(only, t->name)); i++)
			if (!strcmp(test_aside[i], t->name))
				test_start(t);
	for (struct test *t = test_first; t; t = t->next) {
		int result;

		if (only && strcmp(only, t->name))
			continue;
		if (!t->pid)
			test_start(t);
		result = test_end(t);
		n++;
		printf("%s %d - %s%s\n", result && result != 77 ? "not ok" : "ok", n, t->name,
		       result == 77 ? " # SKIP see above" : "");
		if (result && result != 77) {
			printf("# %s\n", t->why);
			failed++;
		}
	}
	printf("1..%d\n", n);
	for (struct test *t = test_first; t; t = t->next)
		if (t->why && t->why[0])
			printf("# failed: %s: %s\n", t->name, t->why);
	return failed || !n;
}
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A unit test is a program that includes this once: TEST(name) { CHECK(x); }. Each test runs in a
 * child of its own with a time limit, prints TAP ("ok 1 - name"), and the program fails if one
 * does. SKIP("reason") leaves a test. A failed assertion (base/assert.h) aborts.
 */
#ifndef TEST_H
#define TEST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct test {
	const char *name;
	void (*run)(void);
	unsigned int seconds;
	struct test *next;
};

static struct test *test_first, **test_last = &test_first;

#define TEST_FOR(id, limit)                                             \
	static void test_##id(void);                                    \
	__attribute__((constructor)) static void test_add_##id(void)    \
	{                                                               \
		static struct test t = {#id, test_##id, (limit), NULL}; \
		*test_last = &t;                                        \
		test_last = &t.next;                                    \
	}                                                               \
	static void test_##id(void)
#define TEST(id) TEST_FOR(id, 60)

#define CHECK(x)                                                                            \
	do {                                                                                \
		if (!(x)) {                                                                 \
			fprintf(stderr, "# %s:%d: not true: %s\n", __FILE__, __LINE__, #x); \
			exit(1);                                                            \
		}                                                                           \
	} while (0)
#define CHECK_INT(a, b)                                                                   \
	do {                                                                              \
		long long a_ = (long long)(a), b_ = (long long)(b);                       \
		if (a_ != b_) {                                                           \
			fprintf(stderr, "# %s:%d: %s is %lld, expected %lld\n", __FILE__, \
				__LINE__, #a, a_, b_);                                    \
			exit(1);                                                          \
		}                                                                         \
	} while (0)
#define CHECK_STR(a, b)                                                                   \
	do {                                                                              \
		const char *a_ = (a), *b_ = (b);                                          \
		if (strcmp(a_, b_)) {                                                     \
			fprintf(stderr, "# %s:%d: %s is '%s', expected '%s'\n", __FILE__, \
				__LINE__, #a, a_, b_);                                    \
			exit(1);                                                          \
		}                                                                         \
	} while (0)
#define SKIP(reason)                                     \
	do {                                             \
		fprintf(stderr, "# skip: %s\n", reason); \
		exit(77);                                \
	} while (0)

int main(int argc, char **argv)
{
	int n = 0, failed = 0;

	setenv("FUSEE_ASSERT", "abort", 0);
	for (struct test *t = test_first; t; t = t->next) {
		int status = 0;
		pid_t pid;

		if (argc > 1 && strcmp(argv[1], t->name))
			continue;
		fflush(stdout);
		pid = fork();
		if (!pid) {
			alarm(t->seconds);
			t->run();
			exit(0);
		}
		waitpid(pid, &status, 0);
		n++;
		if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
			printf("ok %d - %s # SKIP see above\n", n, t->name);
		} else if (WIFEXITED(status) && !WEXITSTATUS(status)) {
			printf("ok %d - %s\n", n, t->name);
		} else {
			failed++;
			printf("not ok %d - %s # %s %d\n", n, t->name,
			       WIFSIGNALED(status) ? "signal" : "exit",
			       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		}
	}
	printf("1..%d\n", n);
	return failed || !n;
}
#endif

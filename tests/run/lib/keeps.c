/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is kept or freed by known sites, for tests/run/inuse: `keeps N` waits for a byte,
 * execs itself, allocates, writes for each site "site calls bytes kept-calls kept-bytes", and a
 * line "end", and waits for the end of its input. With WITH_NEW it is C++, with new and delete.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef WITH_NEW
#include <new>
#endif

#define APART __attribute__((noinline))
#define NO_TAIL_CALL __asm__ volatile("" ::: "memory")
#define KEEP(p) __asm__ volatile("" ::"r"(p) : "memory")

/* What is kept stays known to the program: the list is not on the heap. */
#define MOST 4000000
static void *kept[MOST];
static size_t nkept;
static void *volatile nothing;

static void keep(void *p)
{
	KEEP(p);
	if (!p || nkept == MOST)
		exit(3);
	kept[nkept++] = p;
}

static void done(void *p)
{
	KEEP(p);
	free(p);
}

/* Each is a function in the stack. i: the number of the call. */
APART static void leaks(unsigned int i)
{
	(void)i;
	keep(malloc(120));
	NO_TAIL_CALL;
}

APART static void leaks_large(unsigned int i)
{
	(void)i;
	keep(malloc(100000)); /* more than a period */
	NO_TAIL_CALL;
}

APART static void frees(unsigned int i)
{
	(void)i;
	done(malloc(120));
	NO_TAIL_CALL;
}

APART static void frees_half(unsigned int i)
{
	void *p = calloc(3, 300);

	if (i & 1)
		done(p);
	else
		keep(p);
	NO_TAIL_CALL;
}

/* The first two are ended by the third. */
APART static void grows(unsigned int i)
{
	void *p = malloc(500);

	(void)i;
	KEEP(p);
	p = realloc(p, 40000);
	KEEP(p);
	p = realloc(p, 2000);
	keep(p);
	NO_TAIL_CALL;
}

/* realloc() to 0 bytes frees; if it fails it does not. */
APART static void shrinks(unsigned int i)
{
	void *p = malloc(3000);

	(void)i;
	KEEP(p);
	done(realloc(p, 0)); /* some allocators return memory of no bytes */
	NO_TAIL_CALL;
}

static volatile size_t too_many = (size_t)1 << 62;

APART static void fails_to_grow(unsigned int i)
{
	void *p = malloc(3500);

	(void)i;
	KEEP(p);
	if (realloc(p, too_many))
		exit(4);
	keep(p);
	NO_TAIL_CALL;
}

APART static void aligned(unsigned int i)
{
	void *p = NULL;

	if (posix_memalign(&p, 64, 6400))
		exit(1);
	if (i & 1)
		keep(p);
	else
		done(p);
	p = memalign(256, 2560);
	if (i & 1)
		done(p);
	else
		keep(p);
	done(aligned_alloc(64, 1600));
	keep(reallocarray(nothing, 10, 70));
	NO_TAIL_CALL;
}

#ifdef WITH_NEW
struct object {
	char bytes[640];
};

APART static void makes(unsigned int i)
{
	object *o = new object;

	if (i & 1)
		keep(o);
	else
		delete o;
	KEEP(o);
	NO_TAIL_CALL;
}

APART static void makes_arrays(unsigned int i)
{
	char *a = new char[2222], *b = new (std::nothrow) char[1111];

	keep(b);
	if (i & 1)
		keep(a);
	else
		delete[] a;
	KEEP(a);
	NO_TAIL_CALL;
}

/* An exception passes the functions that allocate. */
APART static void throws(unsigned int i)
{
	(void)i;
	try {
		KEEP(new char[too_many]);
		exit(5);
	} catch (const std::bad_alloc &) {
	}
	NO_TAIL_CALL;
}
#endif

static const struct site {
	const char *name;
	void (*once)(unsigned int i);
	unsigned int calls, bytes;           /* of two calls of once() */
	unsigned int kept_calls, kept_bytes; /* likewise */
	unsigned int part;                   /* n / part calls of once() */
} sites[] = {
	{"leaks", leaks, 2, 240, 2, 240, 1},
	{"leaks_large", leaks_large, 2, 200000, 2, 200000, 100},
	{"frees", frees, 2, 240, 0, 0, 1},
	{"frees_half", frees_half, 2, 1800, 1, 900, 2},
	{"grows", grows, 6, 85000, 2, 4000, 5},
	{"shrinks", shrinks, 2, 6000, 0, 0, 5},
	{"fails_to_grow", fails_to_grow, 2, 7000, 2, 7000, 5},
	{"aligned", aligned, 8, 22520, 4, 10360, 5},
#ifdef WITH_NEW
	{"makes", makes, 2, 1280, 1, 640, 2},
	{"makes_arrays", makes_arrays, 4, 6666, 3, 4444, 2},
	{"throws", throws, 0, 0, 0, 0, 100},
#endif
};

static unsigned int n;

/* Memory goes from thread to thread: what one has allocated another frees, while others get the
 * same addresses. */
static void *volatile handed[4];

APART static void *of_thread(void *arg)
{
	for (unsigned int i = 0; i < n; i++) {
		void *p = malloc(600);

		KEEP(p);
		p = __atomic_exchange_n(&handed[i & 3], p, __ATOMIC_ACQ_REL);
		done(p);
	}
	NO_TAIL_CALL;
	return arg;
}

APART static void of_child(void)
{
	keep(malloc(120));
	NO_TAIL_CALL;
}

/* A child has copies of what is in use, and frees them: they are its own. */
static void forked(void)
{
	pid_t child = fork();

	if (!child) {
		for (size_t i = 0; i < nkept; i++)
			free(kept[i]);
		for (unsigned int i = 0; i < n; i++)
			of_child();
		_exit(0);
	}
	if (child < 0 || waitpid(child, NULL, 0) != child)
		exit(6);
}

/* The memory of a program ends with its exec. */
APART static void before_exec(char **argv)
{
	char again[] = "again", *const args[] = {argv[0], argv[1], again, NULL};

	for (unsigned int i = 0; i < n; i++)
		keep(malloc(150));
	execv("/proc/self/exe", args);
	exit(7);
}

int main(int argc, char **argv)
{
	pthread_t threads[3];
	char c;

	n = argc > 1 ? (unsigned int)atoi(argv[1]) : 1000;
	setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
	if ((argc < 3 || !strcmp(argv[2], "only")) && read(0, &c, 1) != 1)
		return 1;
	if (argc < 3)
		before_exec(argv);
	if (!strcmp(argv[2], "only")) { /* allocates, and nothing else */
		for (unsigned int i = 0; i < n; i++)
			leaks(i);
		puts("end");
		return read(0, &c, 1) != 0;
	}
	for (size_t i = 0; i < sizeof(sites) / sizeof(*sites); i++) {
		const struct site *s = &sites[i];
		unsigned long long times = n / s->part / 2;

		for (unsigned int k = 0; k < 2 * times; k++)
			s->once(k);
		printf("%s %llu %llu %llu %llu\n", s->name, times * s->calls, times * s->bytes,
		       times * s->kept_calls, times * s->kept_bytes);
	}
	for (int i = 0; i < 3; i++)
		if (pthread_create(&threads[i], NULL, of_thread, NULL))
			return 1;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	printf("of_thread %llu %llu 4 2400\n", 3ull * n, 1800ull * n);
	forked();
	puts("end");
	while (read(0, &c, 1) > 0)
		;
	return 0;
}

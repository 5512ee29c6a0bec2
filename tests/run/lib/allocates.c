/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocations of known sites, sizes and numbers, for tests/run/alloc: `allocates N` writes for each
 * site "site calls bytes". What is allocated is freed at once.
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define APART __attribute__((noinline))
#define NO_TAIL_CALL __asm__ volatile("" ::: "memory")
#define KEEP(p) __asm__ volatile("" ::"r"(p) : "memory")

static void done(void *p)
{
	KEEP(p);
	free(p);
}

static void *volatile nothing; /* so that the compiler does not call malloc() itself */

/* Each is a function in the stack, and says how many bytes it asks for. */
APART static size_t small_malloc(void)
{
	done(malloc(48));
	NO_TAIL_CALL;
	return 48;
}

APART static size_t large_malloc(void)
{
	done(malloc(700000)); /* more than a period */
	NO_TAIL_CALL;
	return 700000;
}

APART static size_t by_calloc(void)
{
	done(calloc(30, 100));
	NO_TAIL_CALL;
	return 3000;
}

/* Which calls malloc(), or jumps to it. */
APART static size_t new_realloc(void)
{
	done(realloc(nothing, 5000));
	NO_TAIL_CALL;
	return 5000;
}

APART static size_t grows(void)
{
	void *p = malloc(100);

	KEEP(p);
	p = realloc(p, 20000);
	KEEP(p);
	p = realloc(p, 600000); /* by now a mapping of its own */
	KEEP(p);
	p = realloc(p, 1000); /* and no longer */
	done(p);
	NO_TAIL_CALL;
	return 100 + 20000 + 600000 + 1000;
}

APART static size_t by_array(void)
{
	done(reallocarray(nothing, 50, 80));
	NO_TAIL_CALL;
	return 4000;
}

APART static size_t aligned(void)
{
	void *p = NULL;

	done(aligned_alloc(64, 6400));
	done(aligned_alloc(16, 1600));
	done(memalign(256, 2560));
	if (posix_memalign(&p, 16, 3333))
		exit(1);
	done(p);
	if (posix_memalign(&p, 4096, 4444))
		exit(1);
	done(p);
	NO_TAIL_CALL;
	return 6400 + 1600 + 2560 + 3333 + 4444;
}

/* One place calls one function or the other, and that is its last act. */
static size_t again_size;

APART static void *again(void *p)
{
	return p ? realloc(p, again_size) : malloc(again_size);
}

APART static size_t in_turn(void)
{
	void *p = NULL;

	again_size = 7000;
	for (int i = 0; i < 3; i++) {
		p = again(p);
		KEEP(p);
	}
	done(p);
	NO_TAIL_CALL;
	return 3 * 7000;
}

static const struct site {
	const char *name;
	size_t (*once)(void);
	unsigned int calls; /* of allocators, by one call of once() */
	unsigned int part;  /* n / part calls of once() */
} sites[] = {
	{"small_malloc", small_malloc, 1, 1},
	{"large_malloc", large_malloc, 1, 100},
	{"by_calloc", by_calloc, 1, 5},
	{"new_realloc", new_realloc, 1, 5},
	{"grows", grows, 4, 50},
	{"by_array", by_array, 1, 5},
	{"aligned", aligned, 5, 20},
	{"in_turn", in_turn, 3, 20},
};

static unsigned int n;

APART static void *of_thread(void *arg)
{
	for (unsigned int i = 0; i < n; i++)
		done(malloc(900));
	NO_TAIL_CALL;
	return arg;
}

static void say(const char *name, uint64_t calls, uint64_t bytes)
{
	printf("%s %llu %llu\n", name, (unsigned long long)calls, (unsigned long long)bytes);
}

int main(int argc, char **argv)
{
	pthread_t threads[3];
	char c;

	n = argc > 1 ? (unsigned int)atoi(argv[1]) : 1000;
	if (argc > 2 && read(0, &c, 1) != 1)
		return 1;
	for (size_t i = 0; i < sizeof(sites) / sizeof(*sites); i++) {
		uint64_t bytes = 0, times = n / sites[i].part;

		for (uint64_t k = 0; k < times; k++)
			bytes += sites[i].once();
		say(sites[i].name, times * sites[i].calls, bytes);
	}
	for (int i = 0; i < 3; i++)
		if (pthread_create(&threads[i], NULL, of_thread, NULL))
			return 1;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	say("of_thread", 3ull * n, 2700ull * n);
	return 0;
}

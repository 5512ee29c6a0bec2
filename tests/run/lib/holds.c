/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is held by known sites, for tests/run/inuse-agent. A line of the input is a command:
 * "+ N" allocates N times at each site, "- N" frees the N oldest of each, "r N" has as many of them
 * realloc()ed, "d N" holds N others, each of a stack of its own, "m N" allocates and frees a mark,
 * which is one of two, "x" execs itself, the end ends it. After each it writes "site objects bytes
 * .." of what is held.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define APART __attribute__((noinline))
#define NO_TAIL_CALL __asm__ volatile("" ::: "memory")
#define MOST 200000

/* Each is a function in the stack. */
APART static void *small(void)
{
	void *p = malloc(130);

	NO_TAIL_CALL;
	return p;
}

APART static void *large(void)
{
	void *p = malloc(100000); /* more than a period */

	NO_TAIL_CALL;
	return p;
}

APART static void *cleared(void)
{
	void *p = calloc(7, 300);

	NO_TAIL_CALL;
	return p;
}

/* What realloc() returns is held; what it is given is not. */
APART static void *grown(void)
{
	void *p = realloc(malloc(900), 5000);

	NO_TAIL_CALL;
	return p;
}

/* As many stacks as there are numbers of so many bits. */
#define BITS 14
APART static void *one(size_t bits, unsigned int depth);

APART static void *zero(size_t bits, unsigned int depth)
{
	void *p = !depth     ? malloc(30000) /* more than a period */
		  : bits & 1 ? one(bits >> 1, depth - 1)
			     : zero(bits >> 1, depth - 1);

	NO_TAIL_CALL;
	return p;
}

APART static void *one(size_t bits, unsigned int depth)
{
	void *p = !depth     ? malloc(30000)
		  : bits & 1 ? one(bits >> 1, depth - 1)
			     : zero(bits >> 1, depth - 1);

	NO_TAIL_CALL;
	return p;
}

static void *deep[1 << BITS];
static size_t ndeep, number;

/* The others are freed. */
static void hold_deep(size_t n)
{
	while (ndeep)
		free(deep[--ndeep]);
	while (ndeep < n && ndeep < 1 << BITS)
		deep[ndeep++] = zero(number++, BITS);
}

/* More than a period. Records are read in their order: those before such a one have been, too. */
APART static void even(void)
{
	void *volatile p = malloc(50000);

	free(p);
	NO_TAIL_CALL;
}

APART static void odd(void)
{
	void *volatile p = malloc(50000);

	free(p);
	NO_TAIL_CALL;
}

static struct site {
	const char *name;
	void *(*get)(void);
	size_t bytes, each; /* of N calls one is made */
	void *held[MOST];
	size_t first, n;
} sites[] = {{"small", small, 130, 1, {0}, 0, 0},
	     {"large", large, 100000, 50, {0}, 0, 0},
	     {"cleared", cleared, 2100, 4, {0}, 0, 0},
	     {"grown", grown, 5000, 10, {0}, 0, 0}};
#define SITES (sizeof(sites) / sizeof(*sites))

static void allocate(struct site *s, size_t n)
{
	for (size_t i = 0; i < n / s->each; i++) {
		if (s->n == MOST)
			exit(3);
		s->held[s->n] = s->get();
		if (!s->held[s->n++])
			exit(4);
	}
}

static void release(struct site *s, size_t n)
{
	for (size_t i = 0; i < n / s->each && s->first < s->n; i++)
		free(s->held[s->first++]);
}

/* The memory is another call's then. */
APART static void *again(void *old, size_t bytes)
{
	void *p = realloc(old, bytes);

	NO_TAIL_CALL;
	return p;
}

static void replace(struct site *s, size_t n)
{
	for (size_t i = 0; i < n / s->each && s->first + i < s->n; i++)
		s->held[s->first + i] = again(s->held[s->first + i], s->bytes);
}

int main(int argc, char **argv)
{
	char line[64];

	(void)argc;
	setvbuf(stdin, NULL, _IONBF, 0); /* nothing is lost with an exec */
	for (;;) {
		size_t n;

		for (size_t i = 0; i < SITES; i++)
			printf("%s %zu %zu ", sites[i].name, sites[i].n - sites[i].first,
			       (sites[i].n - sites[i].first) * sites[i].bytes);
		printf("zero %zu %zu\n", ndeep, ndeep * 30000);
		fflush(stdout);
		if (!fgets(line, sizeof(line), stdin))
			return 0;
		n = line[1] ? strtoul(line + 1, NULL, 10) : 0;
		for (size_t i = 0; i < SITES; i++) {
			if (*line == '+')
				allocate(&sites[i], n);
			else if (*line == '-')
				release(&sites[i], n);
			else if (*line == 'r')
				replace(&sites[i], n);
		}
		if (*line == 'x')
			execv("/proc/self/exe", argv);
		if (*line == 'd')
			hold_deep(n);
		if (*line == 'm')
			n & 1 ? odd() : even();
	}
}

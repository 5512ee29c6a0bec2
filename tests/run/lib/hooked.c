/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hits of known number, for tests/run/probe-agent: `hooked N LIBRARY` does what each word that it
 * reads says and then answers with the word: "load" the library; "round": N calls of hook_call()
 * from first(), 2 N from second(), N hits of the probe, N calls of hook_other(), N of getppid(),
 * and 20 of hook_sleep(); "on": hook_call() without end.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLEEPS 20
#define APART __attribute__((noinline))
#define AND_NO_TAIL_CALL __asm__ volatile("" ::: "memory")

static int n;
static void (*call)(int), (*probe)(int), (*other)(void), (*sleeps)(void);

static void *find(void *library, const char *name)
{
	void *p = dlsym(library, name);

	if (!p)
		exit(2);
	return p;
}

static void load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);

	if (!library)
		exit(3);
	*(void **)&call = find(library, "hook_call");
	*(void **)&probe = find(library, "hook_probe");
	*(void **)&other = find(library, "hook_other");
	*(void **)&sleeps = find(library, "hook_sleep");
}

APART static void first(void)
{
	for (int i = 0; i < n; i++)
		call(i);
	AND_NO_TAIL_CALL;
}

APART static void second(void)
{
	for (int i = 0; i < 2 * n; i++)
		call(i);
	AND_NO_TAIL_CALL;
}

APART static void probes(void)
{
	for (int i = 0; i < n; i++)
		probe(i);
	AND_NO_TAIL_CALL;
}

APART static void others(void)
{
	for (int i = 0; i < n; i++)
		other();
	AND_NO_TAIL_CALL;
}

APART static void calls_kernel(void)
{
	for (int i = 0; i < n; i++)
		syscall(SYS_getppid);
	AND_NO_TAIL_CALL;
}

APART static void naps(void)
{
	for (int i = 0; i < SLEEPS; i++)
		sleeps();
	AND_NO_TAIL_CALL;
}

static void go_round(void)
{
	first();
	second();
	probes();
	others();
	calls_kernel();
	naps();
}

int main(int argc, char **argv)
{
	char word[16];

	n = argc > 2 ? atoi(argv[1]) : 0;
	while (n && scanf("%15s", word) == 1) {
		if (!strcmp(word, "load"))
			load(argv[2]);
		if (!strcmp(word, "round"))
			go_round();
		printf("%s\n", word);
		fflush(stdout);
		while (!strcmp(word, "on"))
			first();
	}
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leader LIBRARY COMMANDS: a process whose first thread ends while others go on. COMMANDS are
 * characters, read from standard input if that is "-"; else 0.3 s of CPU time pass before each:
 * e: the first thread ends; LIBRARY is loaded, and removed, once it has;
 * x: another thread runs the program anew, as "leader LIBRARY burn";
 * q: all threads end, one by one.
 * It prints the stacks that its samples are of, outermost first, and what was done.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CALLED __attribute__((noinline, noclone))

static volatile unsigned long sink;
static volatile int quit;
static pthread_t first;
static sem_t end;
static const char *library;

CALLED static void leaf(void)
{
	for (int i = 0; i < 200000; i++)
		sink = sink * 2862933555777941757ul + 3037000493ul;
	sink++;
}

CALLED static void middle(void)
{
	leaf();
	sink++;
}

CALLED static void top(void)
{
	for (int i = 0; i < 10; i++)
		middle();
	sink++;
}

static void say(const char *what)
{
	puts(what);
	fflush(stdout);
}

static void (*load(void))(void)
{
	void *all = dlopen(library, RTLD_NOW);
	void (*late)(void) = all ? (void (*)(void))dlsym(all, "late") : NULL;

	if (!late || unlink(library))
		_exit(3);
	say("ended");
	return late;
}

/* Joins the first thread when it has ended. */
CALLED static void *work(void *arg)
{
	void (*late)(void) = NULL;

	while (!quit) {
		top();
		if (late)
			late();
		else if (!pthread_tryjoin_np(first, NULL))
			late = load();
	}
	return arg;
}

static double cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int next(const char **commands)
{
	const struct timespec pause = {.tv_nsec = 5000000};
	double since = cpu();

	if (!strcmp(*commands, "-"))
		return getchar();
	while (cpu() < since + 0.3)
		nanosleep(&pause, NULL);
	return *(*commands)++;
}

static void *obey(void *commands)
{
	const char *rest = commands;
	int c;

	while ((c = next(&rest)) > 0 && c != 'q') {
		if (c == 'e')
			sem_post(&end);
		if (c == 'x')
			execl("/proc/thread-self/exe", "leader", library, "burn", NULL);
	}
	quit = 1;
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t worker, reader;

	if (argc != 3)
		return 2;
	library = argv[1];
	if (!strcmp(argv[2], "burn")) {
		say("began anew");
		for (;;)
			top();
	}
	say("work;top;middle;leaf");
	say("work;late;late_leaf");
	say("main;top;middle;leaf");
	say("stacks");
	first = pthread_self();
	sem_init(&end, 0, 0);
	if (pthread_create(&worker, NULL, work, NULL) ||
	    pthread_create(&reader, NULL, obey, argv[2]))
		return 1;
	sem_wait(&end);
	pthread_exit(NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allocates_late MODE [FILE]: says "ready", waits for a byte, and then calls malloc(1000) in
 * after(), 100 times for each "." that it writes, until its input has ended. MODE: "plain"; "led":
 * its first thread has ended before; "ends": it ends at the byte; "execs": another thread executes
 * the program anew at the byte; "maps": it maps FILE at the byte. "at-once" waits for nothing.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))

static pthread_t first;
static const char *mode, *self, *file;

static void say(const char *what)
{
	if (write(1, what, strlen(what)) < 0)
		_exit(3);
}

static void wait_for_byte(void)
{
	char c;

	if (read(0, &c, 1) < 0)
		_exit(3);
}

APART static void after(void)
{
	for (int i = 0; i < 100; i++) {
		void *p = malloc(1000);

		__asm__ volatile("" ::"r"(p) : "memory");
		free(p);
	}
	__asm__ volatile("" ::: "memory");
}

static void rounds(void)
{
	struct pollfd input = {.fd = 0, .events = POLLIN};

	do {
		after();
		say(".");
	} while (!poll(&input, 1, 1));
	exit(0);
}

static void map(void)
{
	int fd = open(file, O_RDONLY);

	if (fd < 0 || mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		exit(3);
}

static void *other(void *arg)
{
	if (strcmp(mode, "execs") != 0)
		pthread_join(first, NULL);
	if (!strcmp(mode, "led"))
		say("ready\n");
	if (strcmp(mode, "ends") != 0)
		wait_for_byte();
	if (!strcmp(mode, "execs"))
		execl(self, self, "at-once", NULL);
	rounds();
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t;

	mode = argc > 1 ? argv[1] : "";
	self = argv[0];
	file = argc > 2 ? argv[2] : "";
	first = pthread_self();
	if (!strcmp(mode, "at-once"))
		rounds();
	if (strcmp(mode, "led") != 0)
		say("ready\n");
	if (!strcmp(mode, "plain") || !strcmp(mode, "maps")) {
		wait_for_byte();
		if (*file)
			map();
		rounds();
	}
	if (!strcmp(mode, "ends"))
		wait_for_byte();
	if (pthread_create(&t, NULL, other, NULL))
		return 3;
	if (!strcmp(mode, "execs"))
		pthread_join(t, NULL);
	pthread_exit(NULL);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * An attack: many libraries of different content, each with a function whose CFA is an expression
 * without an end, in the stacks of many threads.
 *
 *   cfa_loops LIBRARY DIR COUNT THREADS SECONDS
 *
 * LIBRARY is built from cfa_loop.s. Each copy has other bytes in its build ID.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void (**loops)(void (*)(void));
static int count, seconds;
static volatile unsigned long sink;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void burn(void)
{
	double end = now() + 0.02;

	while (now() < end)
		for (int i = 0; i < 10000; i++)
			sink += (unsigned long)i;
}

static void *spin(void *arg)
{
	unsigned int at = (unsigned int)(size_t)arg * 7919u;
	double end = now() + seconds;

	for (; now() < end; at += 31)
		loops[at % (unsigned int)count](burn);
	return NULL;
}

/* The address of the function in a copy of the library with this number as its build ID. */
static void *load(char *bytes, size_t len, size_t id, const char *dir, int number)
{
	char path[512];
	void *handle;
	int fd;

	memcpy(bytes + id, &number, sizeof(number));
	snprintf(path, sizeof(path), "%s/loop-%d-%d.so", dir, (int)getpid(), number);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755);
	if (fd < 0 || write(fd, bytes, len) != (ssize_t)len || close(fd))
		return NULL;
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	unlink(path);
	return handle ? dlsym(handle, "loop") : NULL;
}

int main(int argc, char **argv)
{
	static const char mark[8] = {1, 2, 3, 4, 5, 6, 7, 8}; /* its build ID */
	static char bytes[1 << 20];
	int fd = argc == 6 ? open(argv[1], O_RDONLY) : -1, threads;
	ssize_t len = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));
	char *id = len < 0 ? NULL : memmem(bytes, (size_t)len, mark, sizeof(mark));
	pthread_t thread;

	if (!id)
		return 2;
	count = atoi(argv[3]);
	threads = atoi(argv[4]);
	seconds = atoi(argv[5]);
	loops = calloc((size_t)count, sizeof(*loops));
	for (int i = 0; loops && i < count; i++) {
		void *f = load(bytes, (size_t)len, (size_t)(id - bytes), argv[2], i);

		if (!f)
			return 3;
		memcpy(&loops[i], &f, sizeof(f));
	}
	printf("%d libraries\n", count);
	fflush(stdout);
	for (int i = 0; i < threads; i++)
		if (pthread_create(&thread, NULL, spin, (void *)(size_t)i))
			return 4;
	sleep((unsigned int)seconds + 1);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads whose stacks are known, for tests/run/dump. Writes a line "TID NAME FUNCTION.." for each,
 * innermost function first, then "ready". Each waits in another way, or spins. Line "ok" at SIGTERM
 * if no wait was interrupted.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int pipes[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, locked = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static atomic_int ready, interrupted;
static atomic_ulong spins;
static int deep = 300;

static void say(const char *name, const char *chain)
{
	prctl(PR_SET_NAME, name);
	printf("%ld %s %s\n", syscall(SYS_gettid), name, chain);
	fflush(stdout);
	ready++;
}

__attribute__((noinline)) static void wait_by_read(void)
{
	char byte;

	say("reads", "wait_by_read run_reads");
	if (read(pipes[0], &byte, 1) < 0)
		interrupted++;
	__asm__ volatile("");
}

__attribute__((noinline)) static void *run_reads(void *arg)
{
	wait_by_read();
	return arg;
}

__attribute__((noinline)) static void wait_by_cond(void)
{
	say("conds", "wait_by_cond run_conds");
	pthread_mutex_lock(&mutex);
	for (;;)
		pthread_cond_wait(&cond, &mutex);
}

__attribute__((noinline)) static void *run_conds(void *arg)
{
	wait_by_cond();
	return arg;
}

__attribute__((noinline)) static void wait_by_lock(void)
{
	say("locks", "wait_by_lock run_locks");
	pthread_mutex_lock(&locked);
	__asm__ volatile("");
}

__attribute__((noinline)) static void *run_locks(void *arg)
{
	wait_by_lock();
	return arg;
}

__attribute__((noinline)) static void wait_by_poll(void)
{
	say("polls", "wait_by_poll run_polls");
	if (poll(NULL, 0, 1000000) < 0)
		interrupted++;
	__asm__ volatile("");
}

__attribute__((noinline)) static void *run_polls(void *arg)
{
	wait_by_poll();
	return arg;
}

__attribute__((noinline)) static void wait_by_sleep(void)
{
	const struct timespec long_time = {1000000, 0};

	say("sleeps", "wait_by_sleep run_sleeps");
	if (nanosleep(&long_time, NULL))
		interrupted++;
	__asm__ volatile("");
}

__attribute__((noinline)) static void *run_sleeps(void *arg)
{
	wait_by_sleep();
	return arg;
}

__attribute__((noinline)) static void spin_leaf(void)
{
	for (;;)
		spins++;
}

__attribute__((noinline)) static void *run_spins(void *arg)
{
	say("spins", "spin_leaf run_spins");
	spin_leaf();
	return arg;
}

__attribute__((noinline)) static void recurse(int n)
{
	if (n)
		recurse(n - 1);
	else
		wait_by_sleep();
	__asm__ volatile("");
}

__attribute__((noinline)) static void *run_deep(void *arg)
{
	recurse(deep);
	return arg;
}

static int compare(const void *a, const void *b)
{
	static atomic_int once;

	if (!once++)
		wait_by_sleep();
	return *(const int *)a - *(const int *)b;
}

/* Through libc and back. */
__attribute__((noinline)) static void *run_sort(void *arg)
{
	int numbers[] = {3, 1, 2};

	qsort(numbers, 3, sizeof(*numbers), compare);
	return arg;
}

static void in_signal(int signal)
{
	(void)signal;
	wait_by_sleep();
	__asm__ volatile("");
}

/* Through a signal handler. */
__attribute__((noinline)) static void *run_signal(void *arg)
{
	signal(SIGUSR1, in_signal);
	pthread_kill(pthread_self(), SIGUSR1);
	return arg;
}

/* Threads that begin and end all the time. */
static void *nothing(void *arg)
{
	return arg;
}

static void *run_brief(void *arg)
{
	for (;;) {
		pthread_t t;

		if (!pthread_create(&t, NULL, nothing, NULL))
			pthread_join(t, NULL);
	}
	return arg;
}

/* In uninterruptible sleep until its child ends. */
static void *run_vfork(void *arg)
{
	prctl(PR_SET_NAME, "vforks");
	printf("%ld vforks\n", syscall(SYS_gettid));
	fflush(stdout);
	ready++;
	if (!vfork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sleep(1000);
		_exit(1);
	}
	return arg;
}

/* Ends with EINTR if the thread is stopped. */
__attribute__((noinline)) static void wait_by_epoll(void)
{
	struct epoll_event e;
	int fd = epoll_create1(0);

	say("epolls", "wait_by_epoll run_epolls");
	if (epoll_wait(fd, &e, 1, -1) < 0)
		interrupted++;
	__asm__ volatile("");
}

__attribute__((noinline)) static void *run_epolls(void *arg)
{
	wait_by_epoll();
	return arg;
}

static void start(void *(*run)(void *))
{
	pthread_attr_t a;
	pthread_t t;

	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 64 << 20);
	if (pthread_create(&t, &a, run, NULL))
		exit(2);
}

static void start_all(const char *what)
{
	void *(*const all[])(void *) = {run_reads, run_conds, run_locks, run_polls, run_sleeps,
					run_spins, run_deep,  run_sort,  run_signal};
	const int n = sizeof(all) / sizeof(*all);

	pthread_mutex_lock(&locked);
	if (!strcmp(what, "epoll"))
		start(run_epolls);
	if (!strcmp(what, "all") || !strcmp(what, "epoll"))
		for (int i = 0; i < n; i++)
			start(all[i]);
	for (int i = 0; !strcmp(what, "many") && i < 200; i++)
		start(i ? run_conds : run_spins);
	if (!strcmp(what, "brief"))
		for (int i = 0; i < 2; i++)
			start(run_brief);
	if (!strcmp(what, "deep"))
		start(run_deep);
	if (!strcmp(what, "vfork"))
		start(run_vfork);
}

static void stop(int signal)
{
	(void)signal;
	if (interrupted)
		_exit(3);
	_exit(write(STDOUT_FILENO, "ok\n", 3) == 3 ? 0 : 4);
}

/* threads_of all|epoll|many|brief|deep|vfork [DEPTH] */
int main(int argc, char **argv)
{
	const struct timespec pause = {0, 200000000};

	if (argc < 2 || pipe(pipes))
		return 2;
	if (argc > 2)
		deep = atoi(argv[2]);
	signal(SIGTERM, stop);
	start_all(argv[1]);
	nanosleep(&pause, NULL);
	printf("ready\n");
	fflush(stdout);
	for (;;) {
		unsigned long before = spins;

		nanosleep(&pause, NULL);
		if (spins != before)
			printf("spins %lu\n", spins);
		fflush(stdout);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits of known length and place, for tests/run/offcpu: `waits N` writes for each place
 * "place count ns queued", the ns by the thread's own clocks and by the scheduler.
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- the other side of pipes and futexes: it answers after a pause ---- */

static int ask[2], answer[2];
static uint32_t word;
static long pause_ns;

static void nap(long ns)
{
	struct timespec t = {ns / 1000000000, ns % 1000000000};

	nanosleep(&t, NULL);
}

static void *answers(void *arg)
{
	char c;

	(void)arg;
	while (read(ask[0], &c, 1) == 1) {
		nap(pause_ns);
		if (c == 'p' && write(answer[1], &c, 1) != 1)
			break;
		if (c == 'f') {
			__atomic_store_n(&word, 1, __ATOMIC_RELEASE);
			syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
		}
	}
	return NULL;
}

static void request(char c)
{
	if (write(ask[1], &c, 1) != 1)
		exit(1);
}

/* ---- the places; each is a function in the stack ---- */

__attribute__((noinline)) static void sleep_long(void)
{
	nap(pause_ns);
	__asm__ volatile("");
}

__attribute__((noinline)) static void sleep_short(void)
{
	nap(400000);
	__asm__ volatile("");
}

__attribute__((noinline)) static void wait_pipe(void)
{
	char c;

	request('p');
	if (read(answer[0], &c, 1) != 1)
		exit(1);
	__asm__ volatile("");
}

__attribute__((noinline)) static void wait_futex(void)
{
	request('f');
	while (!__atomic_load_n(&word, __ATOMIC_ACQUIRE))
		syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	__atomic_store_n(&word, 0, __ATOMIC_RELEASE);
	__asm__ volatile("");
}

/* It always has something to do, and shares its CPU with a hog. */
__attribute__((noinline)) static void spin(void)
{
	uint64_t end = cpu() + 5000000;

	while (cpu() < end)
		;
	__asm__ volatile("");
}

/* ---- ---- */

struct place {
	const char *name;
	void (*once)(void);
	int n;
};

/* For how long the thread was ready and did not run, by the scheduler. */
static uint64_t queued(void)
{
	unsigned long long ran, waited = 0;
	FILE *f = fopen("/proc/thread-self/schedstat", "r");

	if (!f || fscanf(f, "%llu %llu", &ran, &waited) != 2)
		exit(1);
	fclose(f);
	return waited;
}

static void measure(const struct place *p)
{
	uint64_t began = now(), used = cpu(), ready = queued();

	for (int i = 0; i < p->n; i++)
		p->once();
	began = now() - began - (cpu() - used);
	printf("%s %d %llu %llu\n", p->name, p->n, (unsigned long long)began,
	       (unsigned long long)(queued() - ready));
	fflush(stdout);
}

static void pin(int to)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(to, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* Fills the CPU until its parent ends it. */
static pid_t hog(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	for (volatile uint64_t i = 0;; i++)
		;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 10;
	const struct place places[] = {{"sleep_long", sleep_long, n},
				       {"sleep_short", sleep_short, n * 100},
				       {"wait_pipe", wait_pipe, n},
				       {"wait_futex", wait_futex, n}};
	const struct place spinning = {"spin", spin, n * 4};
	pthread_t thread;
	pid_t pid;

	pause_ns = 20000000;
	if (pipe(ask) || pipe(answer) || pthread_create(&thread, NULL, answers, NULL))
		return 1;
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
		measure(&places[i]);
	pin(sched_getcpu());
	pid = hog();
	measure(&spinning);
	kill(pid, 9);
	waitpid(pid, NULL, 0);
	return 0;
}

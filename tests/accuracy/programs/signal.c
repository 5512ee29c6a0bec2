/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Burns inside a signal handler that interrupts deep code anywhere: in prologues, epilogues and
 *leaves, and exactly at an instruction (int3).
 *
 * Built three times:
 *	(nothing)     the handler runs on the stack of the code that it interrupts
 *	ALT_NEAR      on an alternate stack, in the same block of memory, right below the thread's
 *own stack: a copy of 64 KiB holds both ALT_FAR       on an alternate stack of its own: no copy
 *from the handler's sp holds the rest
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "burn.h"

#define DEPTH 12
#define OWN 24576
#define ALT 16384

static NOIPA void burn_signal(void)
{
	BURN_LOOP(100000); /* some hundred us */
}

static NOIPA void on_signal(int sig)
{
	(void)sig;
	burn_signal();
	NO_TAIL();
}

static NOIPA void burn_trap(void)
{
	BURN_LOOP(3000);
}

static NOIPA void on_trap(int sig)
{
	(void)sig;
	burn_trap();
	NO_TAIL();
}

static NOIPA void burn_below(void)
{
	BURN_LOOP(30);
}

static NOIPA void trap_here(void)
{
	__asm__ volatile("int3" ::: "memory");
}

static NOIPA long dive(long depth)
{
	long r;

	if (depth == DEPTH) {
		burn_below();
		return 0;
	}
	r = dive(depth + 1);
	NO_TAIL();
	return r + depth;
}

static NOIPA void trap_above(void)
{
	trap_here();
	NO_TAIL();
}

static void handle(int sig, void (*f)(int))
{
	struct sigaction sa = {.sa_handler = f, .sa_flags = SA_ONSTACK | SA_RESTART};

	sigfillset(&sa.sa_mask);
	sigaction(sig, &sa, NULL);
}

/* A signal each millisecond of wall time, to the burning thread. */
static void tick(void)
{
	struct itimerspec it = {.it_interval.tv_nsec = 1300000, .it_value.tv_nsec = 1300000};
	struct sigevent ev = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
	timer_t timer;

	ev._sigev_un._tid = (int)syscall(SYS_gettid);
	if (timer_create(CLOCK_MONOTONIC, &ev, &timer) || timer_settime(timer, 0, &it, NULL)) {
		perror("timer");
		exit(1);
	}
}

static NOIPA void work(void)
{
	while (go_on())
		for (int i = 0; i < 200; i++) {
			for (int j = 0; j < 200; j++)
				dive(1);
			trap_above();
		}
}

#ifdef ALT_NEAR
static char *block;

static void *thread_main(void *arg)
{
	stack_t alt = {.ss_sp = block, .ss_size = ALT};

	sigaltstack(&alt, NULL);
	tick();
	work();
	NO_TAIL();
	return arg;
}
#endif

int main(int argc, char **argv)
{
	handle(SIGUSR1, on_signal);
	handle(SIGTRAP, on_trap);
	burn_ready(argc, argv);
#ifdef ALT_NEAR
	pthread_attr_t attr;
	pthread_t thread;

	block = mmap(NULL, ALT + OWN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (block == MAP_FAILED)
		return 1;
	memset(block, 1, ALT + OWN); /* no page of it is missing */
	pthread_attr_init(&attr);
	if (pthread_attr_setstack(&attr, block + ALT, OWN) ||
	    pthread_create(&thread, &attr, thread_main, NULL))
		return 1;
	pthread_join(thread, NULL);
#else
#ifdef ALT_FAR
	stack_t alt = {.ss_sp = malloc(65536), .ss_size = 65536};

	sigaltstack(&alt, NULL);
#endif
	tick();
	work();
#endif
	return 0;
}

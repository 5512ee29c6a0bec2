/* SPDX-License-Identifier: Apache-2.0 */
/*
 * locked WHAT ROUNDS NS: a thread holds a lock for NS while another waits for it, in two functions
 * in turn, of which the second holds it three times as long. WHAT: mutex, pi, robust, rwlock,
 * write; and waits that no lock's holder ends: cond, sem, timeout. Prints for each function the
 * least and the most ns that the other thread has waited: from its call of lock until the holder
 * releases the lock, and until the call returns; then the lock's address and size.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem;
static const char *what;
static atomic_int turn; /* even: nobody holds; odd: held, the other may try */
static long hold_ns;
static double least[2], most[2]; /* by who held */
static double released;          /* when */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void nap(long ns)
{
	struct timespec t = {ns / 1000000000, ns % 1000000000};

	nanosleep(&t, NULL);
}

static void take(int by_holder)
{
	if (!strcmp(what, "rwlock"))
		by_holder ? pthread_rwlock_wrlock(&rwlock) : pthread_rwlock_rdlock(&rwlock);
	else if (!strcmp(what, "write"))
		by_holder ? pthread_rwlock_rdlock(&rwlock) : pthread_rwlock_wrlock(&rwlock);
	else
		pthread_mutex_lock(&mutex);
}

static void release(void)
{
	released = now();
	if (!strcmp(what, "rwlock") || !strcmp(what, "write"))
		pthread_rwlock_unlock(&rwlock);
	else
		pthread_mutex_unlock(&mutex);
}

static void hold(int who, long ns)
{
	take(1);
	atomic_store(&turn, 2 * who + 1);
	nap(ns);
	release();
	while (atomic_load(&turn) & 1)
		sched_yield();
}

__attribute__((noinline)) void holds_short(void)
{
	hold(0, hold_ns);
	__asm__ volatile("");
}

__attribute__((noinline)) void holds_long(void)
{
	hold(1, 3 * hold_ns);
	__asm__ volatile("");
}

static void *waits(void *rounds)
{
	for (long i = 0; i < 2 * (long)(intptr_t)rounds; i++) {
		double began;
		int t;

		while (!((t = atomic_load(&turn)) & 1))
			sched_yield();
		began = now();
		take(0);
		most[t / 2] += now() - began;
		least[t / 2] += released > began ? released - began : 0;
		release();
		atomic_store(&turn, 0);
	}
	return NULL;
}

/* ---- waits that are no lock's ---- */

static void *gives(void *rounds)
{
	for (long i = 0; i < (long)(intptr_t)rounds; i++) {
		nap(hold_ns);
		if (!strcmp(what, "sem")) {
			sem_post(&sem);
		} else {
			pthread_mutex_lock(&mutex);
			atomic_store(&turn, 1);
			pthread_mutex_unlock(&mutex);
			pthread_cond_signal(&cond);
			while (atomic_load(&turn))
				nap(hold_ns / 10);
		}
	}
	return NULL;
}

static void take_one(void)
{
	if (!strcmp(what, "sem")) {
		sem_wait(&sem);
		return;
	}
	pthread_mutex_lock(&mutex);
	while (!atomic_load(&turn))
		pthread_cond_wait(&cond, &mutex);
	atomic_store(&turn, 0);
	pthread_mutex_unlock(&mutex);
}

static void *times_out(void *rounds)
{
	for (long i = 0; i < (long)(intptr_t)rounds; i++) {
		struct timespec t;

		clock_gettime(CLOCK_REALTIME, &t);
		t.tv_nsec += hold_ns;
		t.tv_sec += t.tv_nsec / 1000000000;
		t.tv_nsec %= 1000000000;
		if (pthread_mutex_timedlock(&mutex, &t) != ETIMEDOUT)
			abort();
	}
	return NULL;
}

static void init_mutex(void)
{
	pthread_mutexattr_t a;

	pthread_mutexattr_init(&a);
	if (!strcmp(what, "pi"))
		pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);
	if (!strcmp(what, "robust"))
		pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&mutex, &a);
}

int main(int argc, char **argv)
{
	long rounds = argc > 2 ? atol(argv[2]) : 10;
	int lock = 1;
	pthread_t t;

	what = argc > 1 ? argv[1] : "mutex";
	hold_ns = argc > 3 ? atol(argv[3]) : 1000000;
	init_mutex();
	sem_init(&sem, 0, 0);
	if (!strcmp(what, "cond") || !strcmp(what, "sem")) {
		pthread_create(&t, NULL, gives, (void *)(intptr_t)rounds);
		for (long i = 0; i < rounds; i++)
			take_one();
		lock = 0;
	} else if (!strcmp(what, "timeout")) {
		pthread_mutex_lock(&mutex);
		pthread_create(&t, NULL, times_out, (void *)(intptr_t)rounds);
		lock = 0;
	} else {
		pthread_create(&t, NULL, waits, (void *)(intptr_t)rounds);
	}
	for (long i = 0; lock && i < rounds; i++) {
		holds_short();
		holds_long();
	}
	pthread_join(t, NULL);
	for (int i = 0; i < 2; i++)
		printf("%.0f %.0f\n", least[i], most[i]);
	if (!strcmp(what, "rwlock") || !strcmp(what, "write"))
		printf("%p %zu\n", (void *)&rwlock, sizeof(rwlock));
	else
		printf("%p %zu\n", (void *)&mutex, sizeof(mutex));
	return 0;
}

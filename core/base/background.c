/* SPDX-License-Identifier: Apache-2.0 */
#include "base/background.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define END_SECONDS 1

struct job {
	struct job *next;
	background_job *run;
	void *arg;
};

/* All members but the semaphores are under the lock. */
struct background {
	pthread_mutex_t lock;
	/* Semaphores, because pthread_cond_signal() can wait for a thread that has no CPU. */
	sem_t work, ended;
	struct job *first, **last;
	uint32_t waiting; /* the job that runs included */
	bool running;     /* the thread exists */
	bool ending;
	bool owned; /* background_free() has not returned */
};

int background_new(struct background **ret)
{
	struct background *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->owned = true;
	b->last = &b->first;
	pthread_mutex_init(&b->lock, NULL);
	sem_init(&b->work, 0, 0);
	sem_init(&b->ended, 0, 0);
	*ret = b;
	return 0;
}

static void free_all(struct background *b)
{
	pthread_mutex_destroy(&b->lock);
	sem_destroy(&b->work);
	sem_destroy(&b->ended);
	free(b);
}

/* Runs the first job, without the lock. */
static void run_first(struct background *b)
{
	struct job *j = b->first;

	b->first = j->next;
	if (!b->first)
		b->last = &b->first;
	pthread_mutex_unlock(&b->lock);
	j->run(j->arg);
	free(j);
	pthread_mutex_lock(&b->lock);
	b->waiting--;
}

static void *thread(void *arg)
{
	struct background *b = arg;
	bool last;

	pthread_setname_np(pthread_self(), "fusee-disk");
	pthread_mutex_lock(&b->lock);
	while (b->first || !b->ending) {
		if (b->first) {
			run_first(b);
			continue;
		}
		pthread_mutex_unlock(&b->lock);
		sem_wait(&b->work);
		pthread_mutex_lock(&b->lock);
	}
	b->running = false;
	last = !b->owned;
	sem_post(&b->ended);
	pthread_mutex_unlock(&b->lock);
	if (last)
		free_all(b);
	return NULL;
}

/* The thread blocks all signals: the control thread handles them. */
static bool start_thread(struct background *b)
{
	pthread_attr_t detached;
	sigset_t all, before;
	pthread_t t;

	sigfillset(&all);
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	b->running = !pthread_create(&t, &detached, thread, b);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&detached);
	return b->running;
}

static bool is_running(struct background *b)
{
	bool running;

	pthread_mutex_lock(&b->lock);
	running = b->running;
	pthread_mutex_unlock(&b->lock);
	return running;
}

void background_free(struct background *b)
{
	struct timespec until;
	bool last;

	if (!b)
		return;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += END_SECONDS;
	pthread_mutex_lock(&b->lock);
	b->ending = true;
	sem_post(&b->work);
	pthread_mutex_unlock(&b->lock);
	while (is_running(b) &&
	       (!sem_clockwait(&b->ended, CLOCK_MONOTONIC, &until) || errno == EINTR))
		;
	pthread_mutex_lock(&b->lock);
	b->owned = false;
	last = !b->running;
	pthread_mutex_unlock(&b->lock);
	if (last)
		free_all(b);
}

/* false: the thread does not run and could not be started. */
static bool add(struct background *b, struct job *j)
{
	bool added;

	pthread_mutex_lock(&b->lock);
	added = b->running || start_thread(b);
	if (added) {
		*b->last = j;
		b->last = &j->next;
		b->waiting++;
		sem_post(&b->work);
	}
	pthread_mutex_unlock(&b->lock);
	return added;
}

int background_try(struct background *b, background_job *run, void *arg)
{
	struct job *j = b ? malloc(sizeof(*j)) : NULL;

	if (b && !j)
		return -ENOMEM;
	if (j) {
		*j = (struct job){NULL, run, arg};
		if (add(b, j))
			return 0;
		free(j); /* there is no thread, so no other job runs */
	}
	run(arg);
	return 0;
}

void background_run(struct background *b, background_job *run, void *arg)
{
	if (background_try(b, run, arg))
		run(arg);
}

static void close_it(void *arg)
{
	close((int)(intptr_t)arg);
}

void background_close(struct background *b, int fd)
{
	background_run(b, close_it, (void *)(intptr_t)fd);
}

uint32_t background_waiting(struct background *b)
{
	uint32_t n;

	if (!b)
		return 0;
	pthread_mutex_lock(&b->lock);
	n = b->waiting;
	pthread_mutex_unlock(&b->lock);
	return n;
}

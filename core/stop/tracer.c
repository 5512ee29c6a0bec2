/* SPDX-License-Identifier: Apache-2.0 */
#include "stop/internal/tracer.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

#define PATIENCE_S 60u

static void wait_for(sem_t *s)
{
	while (sem_wait(s) && errno == EINTR)
		;
}

static void *serve(void *arg)
{
	struct tracer *t = arg;

	for (;;) {
		wait_for(&t->go);
		if (!t->work)
			return NULL;
		t->work(t->arg);
		sem_post(&t->done);
	}
}

int tracer_begin(struct tracer *t)
{
	if (sem_init(&t->go, 0, 0) || sem_init(&t->done, 0, 0))
		return -EAGAIN;
	t->runs = !pthread_create(&t->thread, NULL, serve, t);
	return t->runs ? 0 : -EAGAIN;
}

/* The kernel lets a target that has its memory on a file server of its own, or serves its page
 * faults itself, keep readers waiting. What the thread holds can't be had back then. */
static void wait_for_work(struct tracer *t)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE_S;
	while (sem_timedwait(&t->done, &until))
		if (errno != EINTR) {
			log_error("a process cannot be read: its memory or its files kept fusee "
				  "waiting for %u s: nothing was recorded",
				  PATIENCE_S);
			_exit(EX_TEMPFAIL);
		}
}

void tracer_run(struct tracer *t, void (*work)(void *arg), void *arg)
{
	t->work = work;
	t->arg = arg;
	sem_post(&t->go);
	wait_for_work(t);
}

void tracer_end(struct tracer *t)
{
	if (!t->runs)
		return;
	t->work = NULL;
	sem_post(&t->go);
	pthread_join(t->thread, NULL);
	t->runs = false;
}

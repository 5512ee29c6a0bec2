/* SPDX-License-Identifier: Apache-2.0 */
#include "console/interrupt.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
#define NSIGNALS (sizeof(signals) / sizeof(signals[0]))

struct interrupt {
	pthread_t thread;
	sigset_t set;
	atomic_bool came;
	void (*call)(void *arg);
	void *arg;
};

static void *wait_for_signal(void *arg)
{
	struct interrupt *i = arg;
	int number;

	if (!sigwait(&i->set, &number)) {
		/* not while the callback has a lock */
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
		atomic_store(&i->came, true);
		i->call(i->arg);
	}
	return NULL;
}

/* false: none is blocked. */
static bool find_blocked(sigset_t *set)
{
	bool any = false;
	sigset_t blocked;

	sigemptyset(set);
	if (pthread_sigmask(SIG_BLOCK, NULL, &blocked))
		return false;
	for (size_t i = 0; i < NSIGNALS; i++)
		if (sigismember(&blocked, signals[i]) == 1) {
			sigaddset(set, signals[i]);
			any = true;
		}
	return any;
}

void interrupt_begin(struct interrupt **ret, void (*call)(void *arg), void *arg)
{
	struct interrupt *i = calloc(1, sizeof(*i));

	*ret = NULL;
	if (!i)
		return;
	i->call = call;
	i->arg = arg;
	if (find_blocked(&i->set) && !pthread_create(&i->thread, NULL, wait_for_signal, i))
		*ret = i;
	else
		free(i);
}

bool interrupt_end(struct interrupt *i)
{
	bool came;

	if (!i)
		return false;
	pthread_cancel(i->thread);
	pthread_join(i->thread, NULL);
	came = atomic_load(&i->came);
	free(i);
	return came;
}

void interrupt_block(void)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < NSIGNALS; i++)
		sigaddset(&set, signals[i]);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

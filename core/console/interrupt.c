/* SPDX-License-Identifier: Apache-2.0 */
#include "console/interrupt.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
#define NSIGNALS (sizeof(signals) / sizeof(signals[0]))

struct interrupt {
	pthread_t thread;
	int signals, end; /* a signalfd; an eventfd that ends the thread */
	atomic_int came;
	void (*call)(void *arg);
	void *arg;
};

/* Takes a signal; 0: none came before the end. */
static int next_signal(const struct interrupt *i)
{
	struct pollfd all[] = {{.fd = i->signals, .events = POLLIN},
			       {.fd = i->end, .events = POLLIN}};
	struct signalfd_siginfo info;

	for (;;) {
		if (poll(all, 2, -1) <= 0) /* EINTR, ENOMEM */
			continue;
		if (all[1].revents)
			return 0;
		if (read(i->signals, &info, sizeof(info)) == sizeof(info))
			return (int)info.ssi_signo;
	}
}

static void *wait_for_signal(void *arg)
{
	struct interrupt *i = arg;
	int number = next_signal(i);

	if (number) {
		atomic_store(&i->came, number);
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

static void free_interrupt(struct interrupt *i)
{
	if (i->signals >= 0)
		close(i->signals);
	if (i->end >= 0)
		close(i->end);
	free(i);
}

void interrupt_begin(struct interrupt **ret, void (*call)(void *arg), void *arg)
{
	struct interrupt *i;
	sigset_t set;

	*ret = NULL;
	i = find_blocked(&set) ? calloc(1, sizeof(*i)) : NULL;
	if (!i)
		return;
	i->call = call;
	i->arg = arg;
	i->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	i->end = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (i->signals >= 0 && i->end >= 0 && !pthread_create(&i->thread, NULL, wait_for_signal, i))
		*ret = i;
	else
		free_interrupt(i);
}

int interrupt_end(struct interrupt *i)
{
	int came;

	if (!i)
		return 0;
	/* not pthread_cancel(), which aborts where libgcc_s.so.1 is not installed */
	eventfd_write(i->end, 1);
	pthread_join(i->thread, NULL);
	came = atomic_load(&i->came);
	free_interrupt(i);
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

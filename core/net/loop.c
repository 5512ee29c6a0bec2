/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads: `posted` and `posted_last` are under the lock; all else belongs to the loop's thread.
 * A watch that is removed while events are handled is freed after the last of them (`dead`), since
 * a later event may point to it.
 */
#include "net/loop.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/metrics.h"

enum { EVENTS = 64, MAX_SIGNALS = 16 };
#define SLOW_NS 50000000ull /* a callback that takes longer is counted */

struct loop_watch {
	struct loop *loop;
	struct loop_watch *next, *prev; /* links of loop->watches; next also links loop->dead */
	loop_ready *ready;
	void *arg;
	int fd;
	bool dead;
};

struct loop_timer {
	struct loop *loop;
	uint64_t at, period; /* period 0: once */
	uint64_t order;      /* of timers with equal times */
	uint32_t index;      /* in the heap */
	loop_call *call;
	void *arg;
};

struct post {
	struct post *next;
	loop_call *call;
	void *arg;
};

struct loop_signal_call {
	int signal;
	loop_call *call;
	void *arg;
};

struct loop {
	int epoll, event, signal; /* signal: -1 without signals */
	bool stop;
	struct loop_watch *watches, *dead;
	struct loop_watch *event_watch, *signal_watch;
	struct loop_timer **heap; /* soonest first */
	uint32_t ntimers;
	size_t cap;
	uint64_t order;
	sigset_t set;
	struct loop_signal_call signals[MAX_SIGNALS];
	uint32_t nsignals;
	pthread_mutex_t lock;
	struct post *posted, **posted_last;
};

static void count_slow(uint64_t began, const char *what)
{
	if (clock_now() - began > SLOW_NS)
		metric_add("loop_slow_calls_total",
			   "Total number of callbacks on the control thread that took more than 50 "
			   "ms.",
			   METRIC_LABELS("what", what), 1);
}

/* ---- descriptors ---- */

int loop_watch(struct loop *l, int fd, uint32_t events, loop_ready *ready, void *arg,
	       struct loop_watch **ret)
{
	struct loop_watch *w = malloc(sizeof(*w));
	struct epoll_event e = {.events = events, .data.ptr = w};

	if (!w)
		return -ENOMEM;
	*w = (struct loop_watch){.loop = l, .fd = fd, .ready = ready, .arg = arg};
	if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &e)) {
		int err = -errno;

		free(w);
		return err;
	}
	w->next = l->watches;
	if (w->next)
		w->next->prev = w;
	l->watches = w;
	*ret = w;
	return 0;
}

int loop_watch_events(struct loop_watch *w, uint32_t events)
{
	struct epoll_event e = {.events = events, .data.ptr = w};

	return epoll_ctl(w->loop->epoll, EPOLL_CTL_MOD, w->fd, &e) ? -errno : 0;
}

void loop_unwatch(struct loop_watch *w)
{
	struct loop *l;

	if (!w)
		return;
	l = w->loop;
	epoll_ctl(l->epoll, EPOLL_CTL_DEL, w->fd, NULL);
	if (w->prev)
		w->prev->next = w->next;
	else
		l->watches = w->next;
	if (w->next)
		w->next->prev = w->prev;
	w->dead = true;
	w->next = l->dead;
	l->dead = w;
}

static void free_dead(struct loop *l)
{
	for (struct loop_watch *w = l->dead, *next; w; w = next) {
		next = w->next;
		free(w);
	}
	l->dead = NULL;
}

/* ---- timers: a binary heap ---- */

static bool sooner(const struct loop_timer *a, const struct loop_timer *b)
{
	return a->at < b->at || (a->at == b->at && a->order < b->order);
}

static void place(struct loop *l, uint32_t i, struct loop_timer *t)
{
	l->heap[i] = t;
	t->index = i;
}

static void up(struct loop *l, uint32_t i)
{
	struct loop_timer *t = l->heap[i];

	for (uint32_t parent; i && sooner(t, l->heap[parent = (i - 1) / 2]); i = parent)
		place(l, i, l->heap[parent]);
	place(l, i, t);
}

static void down(struct loop *l, uint32_t i)
{
	struct loop_timer *t = l->heap[i];

	for (uint32_t child; (child = 2 * i + 1) < l->ntimers; i = child) {
		if (child + 1 < l->ntimers && sooner(l->heap[child + 1], l->heap[child]))
			child++;
		if (!sooner(l->heap[child], t))
			break;
		place(l, i, l->heap[child]);
	}
	place(l, i, t);
}

static int timer_new(struct loop *l, uint64_t at, uint64_t period, loop_call *call, void *arg,
		     struct loop_timer **ret)
{
	struct loop_timer *t;

	t = ARRAY_ROOM(l->heap, l->ntimers, l->cap) ? malloc(sizeof(*t)) : NULL;
	if (!t)
		return -ENOMEM;
	*t = (struct loop_timer){l, at, period, l->order++, 0, call, arg};
	l->heap[l->ntimers] = t;
	up(l, l->ntimers++);
	if (ret)
		*ret = t;
	return 0;
}

int loop_every(struct loop *l, uint64_t period_ns, loop_call *call, void *arg,
	       struct loop_timer **ret)
{
	uint64_t period = period_ns ? period_ns : 1, at;

	if (__builtin_add_overflow(clock_now(), period, &at))
		at = UINT64_MAX;
	return loop_every_from(l, at, period, call, arg, ret);
}

int loop_every_from(struct loop *l, uint64_t first_ns, uint64_t period_ns, loop_call *call,
		    void *arg, struct loop_timer **ret)
{
	return timer_new(l, first_ns, period_ns ? period_ns : 1, call, arg, ret);
}

int loop_at(struct loop *l, uint64_t at_ns, loop_call *call, void *arg, struct loop_timer **ret)
{
	return timer_new(l, at_ns, 0, call, arg, ret);
}

void loop_timer_free(struct loop_timer *t)
{
	struct loop *l;
	struct loop_timer *last;

	if (!t)
		return;
	l = t->loop;
	last = l->heap[--l->ntimers];
	if (last != t) {
		place(l, t->index, last);
		up(l, last->index);
		down(l, last->index);
	}
	free(t);
}

/* Moves a periodic timer to its next time after now. */
static void advance(struct loop_timer *t, uint64_t now)
{
	uint64_t missed = now > t->at ? (now - t->at) / t->period : 0;

	if (__builtin_add_overflow(t->at, (missed + 1) * t->period, &t->at))
		t->at = UINT64_MAX;
	t->order = t->loop->order++;
	down(t->loop, t->index);
}

/* Runs at most as many timers as exist now, because a callback that always adds a due timer would
 * keep the loop in here. */
static void fire(struct loop *l)
{
	uint64_t now = clock_now();

	for (uint32_t n = l->ntimers; n && l->ntimers && !l->stop && l->heap[0]->at <= now; n--) {
		struct loop_timer *t = l->heap[0];
		uint64_t began = clock_now();
		loop_call *call = t->call;
		void *arg = t->arg;

		if (t->period)
			advance(t, now);
		else
			loop_timer_free(t);
		call(arg);
		count_slow(began, "timer");
	}
}

/* Milliseconds until the first timer, rounded up. */
static int timeout_ms(const struct loop *l)
{
	uint64_t now, ms;

	if (!l->ntimers)
		return -1;
	now = clock_now();
	if (l->heap[0]->at <= now)
		return 0;
	ms = (l->heap[0]->at - now) / 1000000 + 1;
	return ms < 3600000 ? (int)ms : 3600000;
}

/* ---- signals ---- */

static void on_signal(void *arg, int fd, uint32_t events)
{
	struct signalfd_siginfo info;
	struct loop *l = arg;

	(void)events;
	if (read(fd, &info, sizeof(info)) != sizeof(info))
		return;
	for (uint32_t i = 0; i < l->nsignals; i++)
		if (l->signals[i].signal == (int)info.ssi_signo)
			l->signals[i].call(l->signals[i].arg);
}

int loop_signal(struct loop *l, int signal, loop_call *call, void *arg)
{
	sigset_t set = l->set, added;
	uint32_t i = 0;
	int fd, err;

	while (i < l->nsignals && l->signals[i].signal != signal)
		i++;
	if (i == MAX_SIGNALS)
		return -ENOSPC;
	sigemptyset(&added);
	if (sigaddset(&set, signal) || sigaddset(&added, signal))
		return -errno;
	fd = signalfd(l->signal, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	l->signal = fd;
	if (!l->signal_watch) {
		err = loop_watch(l, fd, EPOLLIN, on_signal, l, &l->signal_watch);
		if (err)
			return err;
	}
	err = -pthread_sigmask(SIG_BLOCK, &added, NULL);
	if (err)
		return err;
	l->set = set;
	l->signals[i] = (struct loop_signal_call){signal, call, arg};
	l->nsignals += i == l->nsignals;
	return 0;
}

/* ---- calls from other threads ---- */

static void on_posts(void *arg, int fd, uint32_t events)
{
	struct loop *l = arg;
	struct post *p, *next;
	uint64_t n;

	(void)events;
	if (read(fd, &n, sizeof(n)) < 0)
		return;
	pthread_mutex_lock(&l->lock);
	p = l->posted;
	l->posted = NULL;
	l->posted_last = &l->posted;
	pthread_mutex_unlock(&l->lock);
	for (; p; p = next) {
		uint64_t began = clock_now();

		next = p->next;
		p->call(p->arg);
		count_slow(began, "post");
		free(p);
	}
}

int loop_post(struct loop *l, loop_call *call, void *arg)
{
	struct post *p = malloc(sizeof(*p));
	uint64_t n = 1;

	if (!p)
		return -ENOMEM;
	*p = (struct post){NULL, call, arg};
	pthread_mutex_lock(&l->lock);
	*l->posted_last = p;
	l->posted_last = &p->next;
	/* Written under the lock: once it is released, the call may run and free the loop. write()
	 * fails only if the counter is at its maximum; the descriptor is readable then. */
	if (write(l->event, &n, sizeof(n)) < 0)
		n = 0;
	pthread_mutex_unlock(&l->lock);
	return 0;
}

/* ---- the loop ---- */

int loop_new(struct loop **ret)
{
	struct loop *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	l->signal = -1;
	l->posted_last = &l->posted;
	sigemptyset(&l->set);
	pthread_mutex_init(&l->lock, NULL);
	l->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	err = l->event < 0 || l->epoll < 0
		      ? -errno
		      : loop_watch(l, l->event, EPOLLIN, on_posts, l, &l->event_watch);
	if (err) {
		loop_free(l);
		return err;
	}
	*ret = l;
	return 0;
}

void loop_free(struct loop *l)
{
	if (!l)
		return;
	while (l->watches)
		loop_unwatch(l->watches);
	free_dead(l);
	while (l->ntimers)
		loop_timer_free(l->heap[l->ntimers - 1]);
	free(l->heap);
	for (struct post *p = l->posted, *next; p; p = next) {
		next = p->next;
		free(p);
	}
	if (l->signal >= 0)
		close(l->signal);
	if (l->event >= 0)
		close(l->event);
	if (l->epoll >= 0)
		close(l->epoll);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

int loop_run(struct loop *l)
{
	struct epoll_event events[EVENTS];
	int n, err = 0;

	while (!l->stop && !err) {
		n = epoll_wait(l->epoll, events, EVENTS, timeout_ms(l));
		if (n < 0 && errno != EINTR)
			err = -errno;
		for (int i = 0; i < n && !l->stop; i++) {
			struct loop_watch *w = events[i].data.ptr;
			uint64_t began = clock_now();

			if (w->dead)
				continue;
			w->ready(w->arg, w->fd, events[i].events);
			if (w != l->event_watch)
				count_slow(began, "descriptor");
		}
		free_dead(l);
		fire(l);
	}
	l->stop = false;
	return err;
}

void loop_stop(struct loop *l)
{
	l->stop = true;
}

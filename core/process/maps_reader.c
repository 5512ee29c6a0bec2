/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads: the lock protects struct maps_reader, except `most` and `event`, which do not change. An
 * answer belongs to the thread that reads it, then to the reader, then to the caller of
 * maps_reader_take(). The last of the owner and the threads frees the struct: a thread may be stuck
 * when the owner ends.
 */
#include "process/maps_reader.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "process/internal/maps_answer.h"

#define END_NS 100000000u           /* within which threads that are not stuck end */
#define STACK (256u << 10)          /* of a thread */
#define SAY_AGAIN_NS 60000000000ull /* abandoned threads are logged once in this time */

/* A request that a thread reads. */
struct reading {
	struct maps_answer *a; /* NULL: none */
	uint64_t began_ns;
	bool abandoned; /* the thread is stuck, and replaced */
};

struct maps_reader {
	pthread_mutex_t lock;
	/* Semaphores, as pthread_cond_signal() can wait for a thread that gets no CPU. */
	sem_t work; /* for threads that are idle */
	sem_t ended;
	int event;
	uint32_t most;
	bool ending, owned;
	uint32_t threads, idle;
	struct maps_answer *queue, **queue_last; /* the oldest first */
	uint32_t waiting;
	struct reading readings[MAPS_READER_THREADS + MAPS_READER_ABANDONED];
	uint32_t reading, abandoned; /* of `readings`: not abandoned, abandoned */
	uint32_t shown;              /* 1 + `abandoned` when its metric was set; 0: never */
	uint64_t said_ns;            /* when an abandoned thread was logged last */
	struct maps_answer *done, **done_last;
	uint64_t bytes; /* of answers in `done` */
};

/* ---- the threads ---- */

static uint32_t of_user(const struct maps_reader *r, uint32_t user, bool abandoned)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < MAPS_READER_THREADS + MAPS_READER_ABANDONED; i++) {
		const struct reading *at = &r->readings[i];

		n += at->a && at->a->user == user && at->abandoned == abandoned;
	}
	return n;
}

/* Whether the user's processes are not read, because an abandoned thread reads one of them. */
static bool is_barred(const struct maps_reader *r, uint32_t user)
{
	return user && of_user(r, user, true);
}

static bool may_be_read(const struct maps_reader *r, uint32_t user)
{
	return of_user(r, user, false) < (user ? 1 : MAPS_READER_THREADS - 1) &&
	       !is_barred(r, user);
}

/* Removes the request from the queue. */
static struct maps_answer *unqueue(struct maps_reader *r, struct maps_answer **at)
{
	struct maps_answer *a = *at;

	*at = a->next;
	if (!*at)
		r->queue_last = at;
	r->waiting--;
	return a;
}

/* Takes the oldest request of a user who may have another reading. NULL: there is none. */
static struct reading *take_request(struct maps_reader *r)
{
	struct maps_answer **at = &r->queue;
	struct reading *to = r->readings;

	if (r->reading == MAPS_READER_THREADS)
		return NULL;
	while (*at && !may_be_read(r, (*at)->user))
		at = &(*at)->next;
	if (!*at)
		return NULL;
	while (to->a)
		to++;
	*to = (struct reading){.a = unqueue(r, at), .began_ns = clock_now()};
	r->reading++;
	return to;
}

static void put_answer(struct maps_reader *r, struct maps_answer *a)
{
	a->next = NULL;
	*r->done_last = a;
	r->done_last = &a->next;
	r->bytes += maps_answer_bytes(a);
}

static void free_all(struct maps_reader *r)
{
	for (struct maps_answer *a = r->queue, *next; a; a = next) {
		next = a->next;
		maps_answer_free(a);
	}
	for (struct maps_answer *a = r->done, *next; a; a = next) {
		next = a->next;
		maps_answer_free(a);
	}
	close(r->event);
	sem_destroy(&r->work);
	sem_destroy(&r->ended);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

/* Has up to n idle threads look for work. */
static void wake(struct maps_reader *r, uint32_t n)
{
	for (uint32_t i = 0; i < n && i < r->idle; i++)
		sem_post(&r->work);
}

static void put_reading(struct maps_reader *r, struct reading *from)
{
	put_answer(r, from->a);
	if (from->abandoned)
		r->abandoned--;
	else
		r->reading--;
	*from = (struct reading){0};
	wake(r, 1); /* another process of the user may be read */
}

/* Whether the calling thread goes on. When an abandoned thread has answered, there is a thread too
 * many. */
static bool is_needed(const struct maps_reader *r)
{
	return !r->ending && r->threads - r->abandoned <= MAPS_READER_THREADS;
}

static void *thread(void *arg)
{
	struct maps_reader *r = arg;
	const uint64_t one = 1;
	struct reading *at;
	bool last;

	pthread_setname_np(pthread_self(), "fusee-maps");
	pthread_mutex_lock(&r->lock);
	while (is_needed(r)) {
		struct maps_answer *a;

		at = r->bytes < MAPS_READER_UNREAD_BYTES ? take_request(r) : NULL;
		if (!at) {
			r->idle++;
			pthread_mutex_unlock(&r->lock);
			sem_wait(&r->work);
			pthread_mutex_lock(&r->lock);
			r->idle--;
			continue;
		}
		a = at->a;
		pthread_mutex_unlock(&r->lock);
		maps_answer_read(a, r->most);
		pthread_mutex_lock(&r->lock);
		put_reading(r, at);
		pthread_mutex_unlock(&r->lock);
		/* Without the lock, which the owner takes when it wakes up. */
		(void)!write(r->event, &one, sizeof(one));
		pthread_mutex_lock(&r->lock);
	}
	last = !--r->threads && !r->owned;
	wake(r, 1); /* for requests that this thread did not take */
	sem_post(&r->ended);
	pthread_mutex_unlock(&r->lock);
	if (last)
		free_all(r);
	return NULL;
}

/* The thread blocks all signals, which the control thread handles. */
static int start_thread(struct maps_reader *r)
{
	pthread_attr_t detached;
	sigset_t all, before;
	pthread_t t;
	int err;

	sigfillset(&all);
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&detached, STACK); /* many may be abandoned */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&t, &detached, thread, r);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&detached);
	r->threads += !err;
	return -err;
}

/* ---- for the owner ---- */

int maps_reader_new(struct maps_reader **ret, uint32_t most)
{
	struct maps_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (r->event < 0) {
		free(r);
		return -errno;
	}
	r->most = most;
	r->owned = true;
	r->queue_last = &r->queue;
	r->done_last = &r->done;
	pthread_mutex_init(&r->lock, NULL);
	sem_init(&r->work, 0, 0);
	sem_init(&r->ended, 0, 0);
	*ret = r;
	return 0;
}

void maps_reader_free(struct maps_reader *r)
{
	struct timespec until = clock_until(clock_now() + END_NS);
	bool last, timed_out = false;

	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	r->ending = true;
	wake(r, r->idle);
	while (r->threads && !timed_out) {
		pthread_mutex_unlock(&r->lock);
		timed_out = sem_clockwait(&r->ended, CLOCK_MONOTONIC, &until) && errno != EINTR;
		pthread_mutex_lock(&r->lock);
	}
	r->owned = false;
	last = !r->threads;
	pthread_mutex_unlock(&r->lock);
	if (last)
		free_all(r);
}

static uint32_t user_of(pid_t pid)
{
	uid_t uid;

	return procfs_user(pid, &uid) ? UINT32_MAX - 1 : uid;
}

static void count_barred(void)
{
	metric_add("processes_unread_total",
		   "Total number of times that the mappings of a process were not read from /proc.",
		   METRIC_LABELS("reason", "another process of the user keeps its reader waiting"),
		   1);
}

/* Starts a thread if more requests wait than threads are idle. 0 or -errno. */
static int start_if_needed(struct maps_reader *r, uint32_t waiting)
{
	return r->idle < waiting && r->threads - r->abandoned < MAPS_READER_THREADS
		       ? start_thread(r)
		       : 0;
}

int maps_reader_request(struct maps_reader *r, pid_t pid, uint64_t id)
{
	struct maps_answer *a = calloc(1, sizeof(*a));
	int err = 0;

	if (!a)
		return -ENOMEM;
	*a = (struct maps_answer){
		.pid = pid, .id = id, .user = user_of(pid), .requested_ns = clock_now()};
	pthread_mutex_lock(&r->lock);
	if (is_barred(r, a->user))
		err = -ETIMEDOUT;
	else if (r->waiting == MAPS_READER_WAITING)
		err = -EBUSY;
	else if (start_if_needed(r, r->waiting + 1) && r->threads == r->abandoned)
		err = -EAGAIN; /* there is no thread that would take it */
	if (!err) {
		*r->queue_last = a;
		r->queue_last = &a->next;
		r->waiting++;
		wake(r, 1);
	}
	pthread_mutex_unlock(&r->lock);
	if (err == -ETIMEDOUT)
		count_barred();
	if (err)
		maps_answer_free(a);
	return err;
}

/* ---- threads that are stuck ---- */

static bool may_be_abandoned(const struct maps_reader *r, const struct reading *at, uint64_t now)
{
	return at->a && !at->abandoned && at->began_ns + MAPS_READER_STUCK_NS < now &&
	       r->abandoned < MAPS_READER_ABANDONED &&
	       of_user(r, at->a->user, true) < (at->a->user ? 1 : MAPS_READER_ABANDONED_OF_ROOT);
}

/* Answers the waiting requests of barred users with an error. */
static void refuse_barred(struct maps_reader *r)
{
	for (struct maps_answer **at = &r->queue; *at;) {
		struct maps_answer *a;

		if (!is_barred(r, (*at)->user)) {
			at = &(*at)->next;
			continue;
		}
		a = unqueue(r, at);
		a->err = -ETIMEDOUT;
		a->exe = "";
		put_answer(r, a);
		count_barred();
	}
}

static void say_abandoned(struct maps_reader *r, const struct maps_answer *a, uint64_t now)
{
	metric_add("maps_readers_replaced_total",
		   "Total number of threads that a process kept waiting, as they read its "
		   "mappings, and that were replaced.",
		   NULL, 1);
	if (r->said_ns && now < r->said_ns + SAY_AGAIN_NS)
		return;
	r->said_ns = now;
	log_warning("the mappings of process %d of user %u can't be read: it holds the lock of its "
		    "memory; the user's other processes are not read meanwhile",
		    (int)a->pid, a->user);
}

uint32_t maps_reader_abandon_stuck(struct maps_reader *r, uint64_t now)
{
	const uint64_t one = 1;
	uint32_t before, n;

	pthread_mutex_lock(&r->lock);
	before = r->abandoned;
	for (uint32_t i = 0; r->waiting && i < MAPS_READER_THREADS + MAPS_READER_ABANDONED; i++) {
		struct reading *at = &r->readings[i];

		if (!may_be_abandoned(r, at, now))
			continue;
		at->abandoned = true;
		r->reading--;
		r->abandoned++;
		say_abandoned(r, at->a, now);
	}
	n = r->abandoned;
	if (n != before)
		refuse_barred(r);
	if (r->waiting)
		start_if_needed(r, r->waiting);
	wake(r, n != before ? r->idle : r->waiting);
	pthread_mutex_unlock(&r->lock);
	if (r->shown != n + 1)
		metric_set("maps_readers_abandoned",
			   "Threads that a process keeps waiting, as they read its mappings.", NULL,
			   n);
	r->shown = n + 1;
	if (n != before)
		(void)!write(r->event, &one, sizeof(one));
	return n;
}

/* ---- answers ---- */

struct maps_answer *maps_reader_take(struct maps_reader *r)
{
	struct maps_answer *a;
	uint64_t n;

	pthread_mutex_lock(&r->lock);
	a = r->done;
	if (a) {
		r->done = a->next;
		if (!r->done)
			r->done_last = &r->done;
		r->bytes -= maps_answer_bytes(a);
		a->next = NULL;
		wake(r, 1); /* there may be room */
	}
	if (!a)
		(void)!read(r->event, &n, sizeof(n));
	pthread_mutex_unlock(&r->lock);
	return a;
}

int maps_reader_fd(const struct maps_reader *r)
{
	return r->event;
}

uint32_t maps_reader_pending(struct maps_reader *r)
{
	uint32_t n;

	pthread_mutex_lock(&r->lock);
	n = r->waiting + r->reading + r->abandoned;
	pthread_mutex_unlock(&r->lock);
	return n;
}

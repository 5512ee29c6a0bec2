/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three threads. The control thread puts profiles and reads the counts. The sink's thread
 * (run_sink) calls the sink. The deadline thread (run_deadlines) ends flushes and cancels calls at
 * their deadlines. All of struct delivery is under the lock, but for instance and ops, which are
 * constant, and failures, which is the sink's thread's. Functions whose comment says "locked" are
 * called with the lock held and return with it held, but may release it in between.
 */
#include "delivery/delivery.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "delivery/failures.h"
#include "delivery/queue.h"

#define SECOND 1000000000ull
#define ABANDON (5 * SECOND)
#define NEVER UINT64_MAX

enum { MAX_FLUSHES = 16, DEADLINE_STACK = 256 << 10 };

struct flush {
	struct flush *next;
	uint64_t deadline, order; /* items with a smaller order are tried */
	void (*done)(void *arg, int err);
	void *arg;
	bool running, answered;
};

struct delivery {
	struct fusee_instance *instance;
	const struct fusee_sink_ops *ops;
	struct failures failures;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t sink_thread, deadline_thread;
	uint32_t threads;  /* that run */
	bool stop;         /* delivery_stop() was called */
	bool cancelled;    /* cancel() of the sink was called */
	bool ended;        /* the sink's thread makes no more calls */
	bool abandoned;    /* delivery_free() did not wait */
	uint64_t deadline; /* of stop */
	uint64_t retry_at; /* 0: at once */
	struct delivery_queue queue;
	struct flush *flushes;
};

/* Locked. Waits for a change of the delivery, or until a time (CLOCK_MONOTONIC ns, NEVER). */
static void wait_until(struct delivery *d, uint64_t until)
{
	struct timespec t = {(time_t)(until / SECOND), (long)(until % SECOND)};

	if (until == NEVER)
		pthread_cond_wait(&d->changed, &d->lock);
	else
		pthread_cond_timedwait(&d->changed, &d->lock, &t);
}

/* ---- the sink's thread ---- */

/* What consume() returned. */
struct outcome {
	int err;
	uint64_t wait_ns; /* until the next attempt */
	char *sentence;   /* NULL: no error, or no memory */
	const char *text; /* a part of sentence, or static */
};

/* Without the lock. */
static void consume(struct delivery *d, struct queue_item *it, struct outcome *o)
{
	struct fusee_sink_out out = {.profile = it->profile, .encoded = &it->encoded};
	struct fusee_delivery what = {sizeof(what), it->attempt, it->profile, &out};

	*o = (struct outcome){.text = ""};
	o->err = d->ops->consume(d->instance->ctx, &what);
	sink_out_fini(&out);
	if (o->err)
		o->sentence = failures_sentence(&d->failures, o->err, &o->text);
	o->wait_ns = failures_consumed(&d->failures, o->err, o->sentence,
				       out.retry_named ? &out.retry_after : NULL);
}

static uint64_t now_plus(uint64_t ns)
{
	return __builtin_add_overflow(clock_now(), ns, &ns) ? NEVER - 1 : ns;
}

/* Locked. Counts the tried item or queues it again; returns it if it is to be freed. */
static struct queue_item *settle(struct delivery *d, struct queue_item *it, const struct outcome *o)
{
	if (d->abandoned)
		return it; /* abandon() counted it */
	if (!o->err) {
		d->queue.stats.last_ok_ns = clock_now();
		d->retry_at = 0;
		queue_delivered(&d->queue);
		return it;
	}
	if (o->err == -EAGAIN)
		d->retry_at = now_plus(o->wait_ns);
	if (o->err == -EAGAIN && !it->evicted) {
		queue_retry(&d->queue);
		return NULL;
	}
	queue_current_lost(&d->queue, o->err == -ECANCELED && d->cancelled ? LOSS_ENDED
				      : o->err == -EAGAIN                  ? LOSS_QUEUE_FULL
									   : LOSS_REFUSED);
	return it;
}

/* Locked. Tries the oldest item; the result of consume(). */
static int attempt(struct delivery *d)
{
	struct delivery_stats *stats = &d->queue.stats;
	struct queue_item *it = queue_take(&d->queue);
	struct outcome o;

	stats->blocked_since = clock_now();
	pthread_mutex_unlock(&d->lock);
	consume(d, it, &o);
	pthread_mutex_lock(&d->lock);
	stats->blocked_since = 0;
	snprintf(stats->last_error, sizeof(stats->last_error), "%s", o.text);
	it = settle(d, it, &o);
	pthread_cond_broadcast(&d->changed);
	pthread_mutex_unlock(&d->lock);
	queue_items_free(it);
	free(o.sentence);
	pthread_mutex_lock(&d->lock);
	return o.err;
}

/* Locked. Calls flush() of the sink; its result. */
static int flush_sink(struct delivery *d, uint64_t deadline)
{
	const char *text = "";
	char *sentence = NULL;
	int err;

	if (!FUSEE_HAS(d->ops, flush) || !d->ops->flush)
		return 0;
	d->queue.stats.blocked_since = clock_now();
	pthread_mutex_unlock(&d->lock);
	err = d->ops->flush(d->instance->ctx, deadline);
	if (err)
		sentence = failures_sentence(&d->failures, err, &text);
	failures_flushed(&d->failures, err, sentence);
	pthread_mutex_lock(&d->lock);
	d->queue.stats.blocked_since = 0;
	if (err)
		snprintf(d->queue.stats.last_error, sizeof(d->queue.stats.last_error), "%s", text);
	free(sentence);
	return err;
}

static bool deadline_passed(const struct delivery *d)
{
	return d->stop && clock_now() >= d->deadline;
}

/* Locked. Removes the first flush; calls its done() unless the deadline thread did. */
static void answer(struct delivery *d, int err)
{
	struct flush *f = d->flushes;

	d->flushes = f->next;
	pthread_mutex_unlock(&d->lock);
	if (!f->answered)
		f->done(f->arg, err);
	free(f);
	pthread_mutex_lock(&d->lock);
}

/* Locked. Runs the first flush. */
static void run_flush(struct delivery *d)
{
	struct flush *f = d->flushes;
	int err = 0, flushed;

	f->running = true;
	while (d->queue.head && d->queue.head->order < f->order && !f->answered &&
	       !deadline_passed(d)) {
		int r = attempt(d);

		err = r ? r : err;
		if (r == -EAGAIN)
			break;
	}
	flushed = f->answered ? 0 : flush_sink(d, f->deadline);
	answer(d, err ? err : flushed);
}

/* Locked. The end of the sink's thread: what remains is lost. */
static void end(struct delivery *d)
{
	struct queue_item *remaining;

	flush_sink(d, d->deadline);
	remaining = queue_lose_all(&d->queue, LOSS_ENDED);
	d->ended = true;
	while (d->flushes)
		answer(d, -ECANCELED);
	pthread_cond_broadcast(&d->changed);
	pthread_mutex_unlock(&d->lock);
	queue_items_free(remaining);
	pthread_mutex_lock(&d->lock);
}

static void destroy_lock(struct delivery *d)
{
	pthread_cond_destroy(&d->changed);
	pthread_mutex_destroy(&d->lock);
}

static void destroy(struct delivery *d)
{
	instance_free(d->instance);
	queue_items_free(d->queue.head);
	destroy_lock(d);
	free(d);
}

/* Locked; releases the lock. The last call of a thread: the last thread of an abandoned delivery
 * frees it. */
static void exit_thread(struct delivery *d)
{
	bool last = !--d->threads && d->abandoned;

	pthread_cond_broadcast(&d->changed);
	pthread_mutex_unlock(&d->lock);
	if (last)
		destroy(d);
}

static void name_thread(const struct delivery *d)
{
	char name[16];

	snprintf(name, sizeof(name), "%s", d->instance->name);
	pthread_setname_np(pthread_self(), name);
}

static void *run_sink(void *arg)
{
	struct delivery *d = arg;

	name_thread(d);
	pthread_mutex_lock(&d->lock);
	for (;;) {
		uint64_t until = d->queue.head ? d->retry_at : NEVER;

		if (d->stop && (!d->queue.head || deadline_passed(d) || until >= d->deadline) &&
		    !d->flushes)
			break;
		if (d->flushes)
			run_flush(d);
		else if (d->queue.head && clock_now() >= until)
			attempt(d);
		else
			wait_until(d, until);
	}
	end(d);
	exit_thread(d);
	return NULL;
}

/* ---- the deadline thread ---- */

/* Locked. Calls done() of a flush whose deadline has passed; returns the next deadline, or 0 if the
 * list may have changed. */
static uint64_t end_late_flushes(struct delivery *d)
{
	uint64_t next = NEVER, now = clock_now();
	struct flush late, *unused;

	for (struct flush **at = &d->flushes, *f; (f = *at);) {
		if (f->answered || f->deadline > now) {
			if (!f->answered && f->deadline < next)
				next = f->deadline;
			at = &f->next;
			continue;
		}
		f->answered = true; /* the sink's thread frees it if it runs */
		unused = f->running ? NULL : f;
		late = *f;
		if (unused)
			*at = f->next;
		pthread_mutex_unlock(&d->lock);
		late.done(late.arg, -ETIMEDOUT);
		free(unused);
		pthread_mutex_lock(&d->lock);
		return 0;
	}
	return next;
}

static void *run_deadlines(void *arg)
{
	struct delivery *d = arg;

	name_thread(d);
	pthread_mutex_lock(&d->lock);
	while (!d->ended) {
		uint64_t until = end_late_flushes(d);

		if (d->stop && !d->cancelled && clock_now() >= d->deadline) {
			d->cancelled = true;
			pthread_mutex_unlock(&d->lock);
			if (FUSEE_HAS(d->ops, cancel) && d->ops->cancel)
				d->ops->cancel(d->instance->ctx);
			pthread_mutex_lock(&d->lock);
			continue;
		}
		if (d->stop && !d->cancelled && d->deadline < until)
			until = d->deadline;
		if (until && !d->ended)
			wait_until(d, until);
	}
	exit_thread(d);
	return NULL;
}

/* ---- calls of the control thread ---- */

/* All signals are blocked in the threads: the control thread receives them. */
static int start_threads(struct delivery *d)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int err;

	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, DEADLINE_STACK);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_mutex_lock(&d->lock);
	err = -pthread_create(&d->deadline_thread, &attr, run_deadlines, d);
	if (!err) {
		d->threads = 2;
		err = -pthread_create(&d->sink_thread, NULL, run_sink, d);
		d->threads -= err != 0;
		d->ended = err != 0;
	}
	pthread_mutex_unlock(&d->lock);
	if (err && d->threads)
		pthread_join(d->deadline_thread, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return err;
}

int delivery_new(struct delivery **ret, struct fusee_instance *in, const struct delivery_options *o)
{
	struct delivery *d = calloc(1, sizeof(*d));
	pthread_condattr_t attr;
	int err;

	if (!d)
		return -ENOMEM;
	d->instance = in;
	d->ops = in->descriptor->ops;
	failures_init(&d->failures, in, o->backoff_first_ns, o->backoff_max_ns);
	queue_init(&d->queue, in->name, o->queue_bytes);
	pthread_mutex_init(&d->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&d->changed, &attr);
	pthread_condattr_destroy(&attr);
	in->owner = d;
	err = start_threads(d);
	if (err) {
		in->owner = NULL;
		destroy_lock(d);
		free(d);
		return err;
	}
	*ret = d;
	return 0;
}

void delivery_not_built(struct delivery *d, uint64_t samples)
{
	pthread_mutex_lock(&d->lock);
	queue_count_lost(&d->queue, LOSS_NOT_BUILT, 1, samples);
	pthread_mutex_unlock(&d->lock);
}

void delivery_put(struct delivery *d, struct builder *b, const struct fusee_profile *p)
{
	struct queue_item *it = calloc(1, sizeof(*it)), *unused = NULL;
	uint64_t bytes = builder_bytes(b), samples = queue_samples(p);
	bool queued = false;

	if (it)
		*it = (struct queue_item){
			.builder = b, .profile = p, .bytes = bytes, .samples = samples};
	pthread_mutex_lock(&d->lock);
	if (d->stop) {
		queue_count_lost(&d->queue, LOSS_ENDED, 1, samples);
	} else if (!it || bytes > d->queue.limit) {
		queue_count_lost(&d->queue, LOSS_QUEUE_FULL, 1, samples);
	} else {
		queue_put(&d->queue, it, &unused);
		queued = true;
		pthread_cond_broadcast(&d->changed);
	}
	pthread_mutex_unlock(&d->lock);
	if (!queued && it)
		unused = it;
	else if (!queued)
		builder_free(b);
	queue_items_free(unused);
}

void delivery_set_queue_bytes(struct delivery *d, uint64_t bytes)
{
	struct queue_item *dropped = NULL;

	pthread_mutex_lock(&d->lock);
	queue_set_limit(&d->queue, bytes, &dropped);
	pthread_mutex_unlock(&d->lock);
	queue_items_free(dropped);
}

void delivery_flush(struct delivery *d, uint64_t deadline_ns, void (*done)(void *arg, int err),
		    void *arg)
{
	struct flush *f = malloc(sizeof(*f)), **last;
	int n = 0, err = f ? 0 : -ENOMEM;

	pthread_mutex_lock(&d->lock);
	for (last = &d->flushes; *last; last = &(*last)->next)
		n++;
	if (d->ended)
		err = -ECANCELED;
	else if (n >= MAX_FLUSHES)
		err = -EBUSY;
	if (!err) {
		*f = (struct flush){NULL, deadline_ns, d->queue.order, done, arg, false, false};
		*last = f;
		f = NULL;
		pthread_cond_broadcast(&d->changed);
	}
	pthread_mutex_unlock(&d->lock);
	free(f);
	if (err)
		done(arg, err);
}

void delivery_stats(struct delivery *d, struct delivery_stats *ret)
{
	pthread_mutex_lock(&d->lock);
	*ret = d->queue.stats;
	ret->queued_bytes = queue_bytes(&d->queue);
	ret->retry_at = d->queue.head && d->retry_at > clock_now() ? d->retry_at : 0;
	pthread_mutex_unlock(&d->lock);
}

const struct fusee_instance *delivery_instance(const struct delivery *d)
{
	return d->instance;
}

void delivery_stop(struct delivery *d, uint64_t deadline_ns)
{
	uint64_t now = clock_now(), deadline = deadline_ns > now ? deadline_ns : now;

	pthread_mutex_lock(&d->lock);
	if (!d->stop || deadline < d->deadline)
		d->deadline = deadline;
	if (!d->stop)
		d->retry_at = 0;
	d->stop = true;
	pthread_cond_broadcast(&d->changed);
	pthread_mutex_unlock(&d->lock);
}

/* Locked. No done() is called after this. */
static void cancel_flushes(struct delivery *d)
{
	for (struct flush **at = &d->flushes, *f; (f = *at);) {
		if (f->answered) {
			at = &f->next;
			continue;
		}
		f->answered = true;
		if (!f->running)
			*at = f->next;
		f->done(f->arg, -ECANCELED);
		if (!f->running)
			free(f);
	}
}

/* Locked. The threads do not end: what they have is lost, and they are detached. */
static void abandon(struct delivery *d)
{
	queue_items_free(queue_lose_all(&d->queue, LOSS_ENDED));
	if (d->queue.current)
		queue_current_lost(&d->queue, LOSS_ENDED); /* the sink's thread frees it */
	d->abandoned = true;
	cancel_flushes(d);
	log_warning("%s: does not end, although it was cancelled: its thread is abandoned",
		    d->instance->name);
	pthread_detach(d->sink_thread);
	pthread_detach(d->deadline_thread);
}

bool delivery_ended(struct delivery *d)
{
	bool ended;

	pthread_mutex_lock(&d->lock);
	ended = !d->threads || d->abandoned;
	pthread_mutex_unlock(&d->lock);
	return ended;
}

void delivery_free(struct delivery *d)
{
	uint64_t until;
	bool stop, running;

	if (!d)
		return;
	pthread_mutex_lock(&d->lock);
	stop = d->stop;
	pthread_mutex_unlock(&d->lock);
	if (!stop)
		delivery_stop(d, 0);
	pthread_mutex_lock(&d->lock);
	until = d->deadline < NEVER - ABANDON ? d->deadline + ABANDON : NEVER;
	while (d->threads && clock_now() < until)
		wait_until(d, until);
	running = d->threads;
	if (running)
		abandon(d);
	pthread_mutex_unlock(&d->lock);
	if (running)
		return;
	pthread_join(d->sink_thread, NULL);
	pthread_join(d->deadline_thread, NULL);
	destroy(d);
}

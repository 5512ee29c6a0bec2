/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three threads, and a fourth for a spool. The control thread puts profiles and reads the counts.
 * The sink's thread (run_sink) calls the sink. The deadline thread (run_deadlines) ends flushes and
 * cancels calls at their deadlines. The spool's thread is in spooling.c, the lock's rules are in
 * internal/state.h.
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
#include "delivery/internal/state.h"
#include "pprof/split.h"

#define SECOND DELIVERY_SECOND
#define ABANDON (5 * SECOND)
#define NEVER DELIVERY_NEVER

enum { MAX_FLUSHES = 16, DEADLINE_STACK = 256 << 10 };

struct flush {
	struct flush *next;
	uint64_t deadline;
	void (*done)(void *arg, int err);
	void *arg;
	bool running, answered;
};

/* ---- the sink's thread ---- */

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
	err = d->ops->flush(d->instance->ctx, clock_own(deadline));
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

/* Locked. Whether the flush continues. */
static bool goes_on(const struct delivery *d, const struct flush *f)
{
	return !f->answered && !deadline_passed(d) && clock_now() < f->deadline;
}

/* Locked. Tries all waiting profiles until an attempt fails. */
static int try_all(struct delivery *d, const struct flush *f)
{
	const struct delivery_stats *stats = &d->queue.stats;
	uint64_t n;
	int err = 0;

	while (d->spool.dir && d->spool.state == SPOOL_OPENING && goes_on(d, f))
		delivery_wait(d, f->deadline);
	/* the spool's thread may have written one more that is not counted yet */
	n = stats->queued + stats->spooled + (d->spool.dir != NULL);
	while (n && goes_on(d, f)) {
		enum delivery_source from = delivery_next_source(d);
		int r;

		if (from == NOWHERE && !delivery_is_coming(d))
			break;
		if (from == NOWHERE) {
			delivery_wait(d, f->deadline);
			continue;
		}
		r = delivery_attempt(d, from);
		if (r == DELIVERY_NOTHING)
			continue;
		n--;
		err = r ? r : err;
		if (r == -EAGAIN)
			break;
	}
	if (!err && n && clock_now() >= f->deadline)
		err = -ETIMEDOUT; /* before the deadline thread has reported it */
	return err;
}

/* Locked. Runs the first flush. */
static void run_flush(struct delivery *d)
{
	struct flush *f = d->flushes;
	int err, flushed;

	f->running = true;
	err = try_all(d, f);
	flushed = f->answered ? 0 : flush_sink(d, f->deadline);
	answer(d, err ? err : flushed);
}

/* Locked. Ends the sink's thread: the remaining profiles are lost. */
static void end(struct delivery *d)
{
	struct queue_item *remaining;

	flush_sink(d, d->deadline);
	d->spool.sink_ended = true;
	pthread_cond_broadcast(&d->changed);
	while (d->spool.dir && d->spool.state != SPOOL_CLOSED)
		delivery_wait(d, NEVER); /* writes the remaining profiles */
	remaining = queue_lose_all(&d->queue, LOSS_ENDED);
	d->ended = true;
	while (d->flushes)
		answer(d, -ECANCELED);
	pthread_cond_broadcast(&d->changed);
	pthread_mutex_unlock(&d->lock);
	queue_items_free(remaining);
	pthread_mutex_lock(&d->lock);
}

/* Locked, while the delivery ends. Whether to make no further attempt. A denied sink would be
 * denied again; profiles in a spool stay there. */
static bool is_over(const struct delivery *d, enum delivery_source from, uint64_t until)
{
	if (deadline_passed(d))
		return true;
	if (!from)
		return !delivery_is_coming(d);
	return until >= d->deadline || (d->queue.stats.denied_since && until > clock_now());
}

static void *run_sink(void *arg)
{
	struct delivery *d = arg;

	delivery_name_thread(d);
	pthread_mutex_lock(&d->lock);
	for (;;) {
		enum delivery_source from = delivery_next_source(d);
		uint64_t until = from ? d->retry_at : NEVER;

		if (d->stop && !d->flushes && is_over(d, from, until))
			break;
		if (d->flushes)
			run_flush(d);
		else if (from && clock_now() >= until)
			delivery_attempt(d, from);
		else if (from)
			delivery_rest(d, d->stop && d->deadline < until ? d->deadline : until);
		else
			delivery_wait(d, d->stop ? d->deadline : NEVER);
	}
	end(d);
	delivery_exit_thread(d);
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

	delivery_name_thread(d);
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
			delivery_wait(d, until);
	}
	delivery_exit_thread(d);
	return NULL;
}

/* ---- calls of the control thread ---- */

/* 0 or -errno: threads that were created end soon. */
static int create_threads(struct delivery *d)
{
	pthread_attr_t attr;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, DEADLINE_STACK);
	err = -pthread_create(&d->deadline_thread, &attr, run_deadlines, d);
	d->threads += !err;
	if (!err && d->spool.dir) {
		err = -pthread_create(&d->spool.thread, NULL, delivery_run_spool, d);
		d->threads += !err;
		d->spool.state = err ? SPOOL_CLOSED : SPOOL_OPENING;
	}
	if (!err) {
		err = -pthread_create(&d->sink_thread, NULL, run_sink, d);
		d->threads += !err;
	}
	d->ended = d->spool.sink_ended = err != 0;
	pthread_attr_destroy(&attr);
	return err;
}

/* All signals are blocked in the threads: the control thread receives them. */
static int start_threads(struct delivery *d)
{
	sigset_t all, before;
	uint32_t ran;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_mutex_lock(&d->lock);
	err = create_threads(d);
	ran = d->threads;
	pthread_mutex_unlock(&d->lock);
	if (err && ran)
		pthread_join(d->deadline_thread, NULL);
	if (err && ran > 1)
		pthread_join(d->spool.thread, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

int delivery_new(struct delivery **ret, struct fusee_instance *in, const struct delivery_options *o)
{
	struct delivery *d = calloc(1, sizeof(*d));
	bool spool = o->spool && *o->spool;
	int err;

	if (d && spool)
		d->spool.dir = strdup(o->spool);
	if (!d || (spool && !d->spool.dir)) {
		free(d);
		return -ENOMEM;
	}
	d->instance = in;
	d->ops = in->descriptor->ops;
	d->files = o->files;
	failures_init(&d->failures, in, o->backoff_first_ns, o->backoff_max_ns);
	queue_init(&d->queue, in->name, o->queue_bytes);
	d->spool.limits = o->spool_limits;
	d->spool.sync_ns = o->spool_sync_ns;
	delivery_init_lock(d);
	in->owner = d;
	err = start_threads(d);
	if (err) {
		in->owner = NULL;
		d->instance = NULL;
		delivery_destroy(d);
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
	uint64_t bytes = builder_bytes(b), samples = profile_samples(p);
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

void delivery_set_spool(struct delivery *d, const struct spool_limits *limits, uint64_t sync_ns)
{
	pthread_mutex_lock(&d->lock);
	d->spool.limits = *limits;
	d->spool.limits_changed = true;
	d->spool.sync_ns = sync_ns;
	pthread_cond_broadcast(&d->changed);
	pthread_mutex_unlock(&d->lock);
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
		*f = (struct flush){.deadline = deadline_ns, .done = done, .arg = arg};
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
	ret->has_spool = d->spool.dir;
	ret->retry_at = delivery_next_source(d) && d->retry_at > clock_now() ? d->retry_at : 0;
	pthread_mutex_unlock(&d->lock);
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

/* Locked. The threads do not end: they are detached, and the profiles that they hold are lost. */
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
	if (d->spool.dir)
		pthread_detach(d->spool.thread);
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
		delivery_wait(d, until);
	running = d->threads;
	if (running)
		abandon(d);
	pthread_mutex_unlock(&d->lock);
	if (running)
		return;
	pthread_join(d->sink_thread, NULL);
	pthread_join(d->deadline_thread, NULL);
	if (d->spool.dir)
		pthread_join(d->spool.thread, NULL);
	delivery_destroy(d);
}

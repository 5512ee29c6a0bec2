/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads: the control thread puts and asks; the sink's thread (work) tries, flushes and ends; the
 * keeper (keep) wakes at deadlines, since the sink's thread may hang in a call. Everything in
 * struct delivery stands under the lock but instance and ops, which never change, and `backoff`,
 * `random`, `logged*`, which are the sink's thread's. An item in consume() is that thread's, but
 * for its `evicted`.
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
#include "base/metrics.h"
#include "base/text.h"
#include "delivery/sink_out.h"

#define SECOND 1000000000ull
#define BACKOFF_FIRST (1 * SECOND)
#define BACKOFF_MOST (300 * SECOND)
#define GIVE_UP (5 * SECOND)
#define LOG_AGAIN (60 * SECOND)
#define NEVER UINT64_MAX

enum { MAX_FLUSHES = 16, KEEPER_STACK = 256 << 10 };
enum lost { QUEUE_FULL, REFUSED, ENDED };

struct item {
	struct item *next;
	struct builder *builder;
	const struct fusee_profile *profile;
	struct delivery_encoded encoded;
	uint64_t bytes, order, samples;
	uint32_t attempt;
	bool evicted; /* while in consume(): its room was given away */
};

struct flush {
	struct flush *next;
	uint64_t deadline, order; /* what was put before this one is to be tried */
	void (*done)(void *arg, int err);
	void *arg;
	bool running, answered;
};

struct delivery {
	struct fusee_instance *instance;
	const struct fusee_sink_ops *ops;
	uint64_t queue_bytes, backoff_first, backoff_most;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t worker, keeper;
	uint32_t threads; /* that have not ended */
	bool stop, cancelled, ended, given_up;
	uint64_t deadline; /* of stop */
	uint64_t retry_at; /* 0: at once */
	struct item *head, **last, *current;
	struct flush *flushes;
	uint64_t bytes, order; /* bytes: of the queue and of current, unless that is evicted */
	struct delivery_stats stats;

	uint64_t backoff, random;
	uint64_t logged_at; /* the last line about a failure, 0 none */
	bool failing;       /* said so, and nothing was delivered since */
};

/* Until somebody changes something, or until then. Under the lock. */
static void wait_until(struct delivery *d, uint64_t until)
{
	struct timespec t = {(time_t)(until / SECOND), (long)(until % SECOND)};

	if (until == NEVER)
		pthread_cond_wait(&d->changed, &d->lock);
	else
		pthread_cond_timedwait(&d->changed, &d->lock, &t);
}

/* ---- counting, under the lock ---- */

static void count(const struct delivery *d, const char *name, const char *help, uint64_t n)
{
	metric_add(name, help, METRIC_LABELS("instance", d->instance->name), n);
}

static void count_lost(struct delivery *d, enum lost why, uint64_t profiles, uint64_t samples)
{
	static const char *const reasons[] = {"queue_full", "refused", "ended"};
	const struct metric_labels *labels = METRIC_LABELS("instance", d->instance->name, "reason",
							   reasons[why]);
	uint64_t *const counts[] = {&d->stats.queue_full, &d->stats.refused, &d->stats.ended};

	*counts[why] += profiles;
	d->stats.samples_lost += samples;
	metric_add("sink_lost_total", "Profiles that a sink did not take.", labels, profiles);
	metric_add("sink_samples_lost_total", "Samples in profiles that a sink did not take.",
		   labels, samples);
}

static void count_delivered(struct delivery *d, uint64_t n)
{
	d->stats.delivered += n;
	count(d, "sink_delivered_total", "Profiles that a sink took.", n);
}

static void count_retried(struct delivery *d, uint64_t n)
{
	d->stats.retried += n;
	count(d, "sink_retried_total", "Attempts after which a profile was kept to be tried again.",
	      n);
}

static uint64_t queued_bytes(const struct delivery *d)
{
	return d->bytes + (d->current && d->current->evicted ? d->current->bytes : 0);
}

static void show_queue(const struct delivery *d)
{
	const struct metric_labels *labels = METRIC_LABELS("instance", d->instance->name);

	metric_set("sink_queue_profiles", "Profiles that wait for a sink.", labels,
		   (double)d->stats.queued);
	metric_set("sink_queue_bytes", "Bytes of memory of profiles that wait for a sink.", labels,
		   (double)queued_bytes(d));
}

/* ---- items ---- */

static void item_free(struct item *it)
{
	while (it) {
		struct item *next = it->next;

		delivery_encoded_fini(&it->encoded);
		builder_free(it->builder);
		free(it);
		it = next;
	}
}

/* How many samples it stands for: the sum of its counts, the entries where it has none. */
static uint64_t samples_of(const struct fusee_profile *p)
{
	uint64_t sum = 0;
	uint32_t type = 0;

	for (; type < p->types.n; type++) {
		uint32_t name = FUSEE_AT(struct fusee_value_type, p->types, type)->type;
		const struct fusee_str *s = FUSEE_AT(struct fusee_str, p->strings, name);

		if (s->len == 7 && !memcmp(s->p, "samples", 7))
			break;
	}
	if (type == p->types.n)
		return p->samples.n;
	for (uint64_t i = type; i < p->values.n; i += p->types.n) {
		int64_t v = *FUSEE_AT(int64_t, p->values, i);

		sum += v > 0 ? (uint64_t)v : 0;
	}
	return sum;
}

/* The oldest one that waits. */
static struct item *pop(struct delivery *d)
{
	struct item *it = d->head;

	d->head = it->next;
	if (!d->head)
		d->last = &d->head;
	it->next = NULL;
	return it;
}

static void push_front(struct delivery *d, struct item *it)
{
	it->next = d->head;
	if (!d->head)
		d->last = &it->next;
	d->head = it;
}

/* The item is no more the queue's: its bytes and its place. */
static void leave(struct delivery *d, const struct item *it)
{
	if (!it->evicted)
		d->bytes -= it->bytes;
	d->stats.queued--;
}

/* Makes room for so many bytes; what is dropped is put at *dropped. */
static void make_room(struct delivery *d, uint64_t bytes, struct item **dropped)
{
	while (d->bytes > d->queue_bytes - bytes) {
		struct item *it;

		if (!d->head) {
			if (!d->current || d->current->evicted)
				return;
			d->current->evicted = true;
			d->bytes -= d->current->bytes;
			continue;
		}
		it = pop(d);
		leave(d, it);
		count_lost(d, QUEUE_FULL, 1, it->samples);
		it->next = *dropped;
		*dropped = it;
	}
}

/* ---- words ---- */

/* What the sink said of its failure, without the part that names it; owned, NULL: no memory. */
static char *words(struct delivery *d, int err, const char **text)
{
	char *sentence = instance_sentence(d->instance, err);
	const char *name = d->instance->name;
	char *at = sentence ? strstr(sentence, name) : NULL;

	*text = at && !strncmp(at + strlen(name), ": ", 2) ? at + strlen(name) + 2
		: sentence                                 ? sentence
							   : strerror(-err);
	return sentence;
}

/* Once when it begins, then no more than once a minute. */
static void say(struct delivery *d, const char *sentence, int err, const char *then)
{
	uint64_t now = clock_now();

	if (d->logged_at && now - d->logged_at < LOG_AGAIN)
		return;
	d->failing = true;
	d->logged_at = now;
	if (sentence)
		log_warning("%s%s", sentence, then);
	else
		log_warning("%s: %s%s", d->instance->name, strerror(-err), then);
}

/* ---- the sink's thread ---- */

/* How long until the next attempt: between half of the backoff and all of it. */
static uint64_t next_backoff(struct delivery *d)
{
	uint64_t ns = d->backoff ? d->backoff : d->backoff_first;

	d->backoff = ns < d->backoff_most / 2 ? ns * 2 : d->backoff_most;
	d->random ^= d->random << 13;
	d->random ^= d->random >> 7;
	d->random ^= d->random << 17;
	return ns / 2 + d->random % (ns / 2 + 1);
}

static void say_retry(struct delivery *d, const char *sentence, uint64_t wait)
{
	double s = (double)wait / (double)SECOND;
	char then[64];

	if (s < 120)
		snprintf(then, sizeof(then), ", trying again in %.*f s", s < 10, s);
	else
		snprintf(then, sizeof(then), ", trying again in %.0f min", s / 60);
	say(d, sentence, -EAGAIN, then);
}

/* Under the lock: what becomes of the item that consume() gave this answer to. Returns what is to
 * be freed. */
static struct item *settle(struct delivery *d, struct item *it, int err, uint64_t retry_at)
{
	if (d->given_up)
		return it; /* was counted */
	leave(d, it);
	if (!err) {
		count_delivered(d, 1);
		d->stats.last_ok_ns = clock_now();
		d->retry_at = 0;
	} else if (err == -EAGAIN && !it->evicted) {
		it->bytes = builder_bytes(it->builder) + delivery_encoded_bytes(&it->encoded);
		it->attempt++;
		d->bytes += it->bytes;
		d->stats.queued++;
		d->retry_at = retry_at;
		push_front(d, it);
		count_retried(d, 1);
		return NULL;
	} else if (err == -ECANCELED && d->cancelled) {
		count_lost(d, ENDED, 1, it->samples);
	} else {
		d->retry_at = err == -EAGAIN ? retry_at : d->retry_at;
		count_lost(d, err == -EAGAIN ? QUEUE_FULL : REFUSED, 1, it->samples);
	}
	return it;
}

/* Tries the oldest one. Called and left under the lock. */
static int try_one(struct delivery *d)
{
	struct item *it = pop(d);
	struct fusee_sink_out out = {.profile = it->profile, .encoded = &it->encoded};
	struct fusee_delivery what = {sizeof(what), it->attempt, it->profile, &out};
	const char *text = "";
	char *sentence = NULL;
	uint64_t wait = 0;
	int err;

	d->current = it;
	d->stats.blocked_since = clock_now();
	pthread_mutex_unlock(&d->lock);
	err = d->ops->consume(d->instance->ctx, &what);
	sink_out_fini(&out);
	if (err)
		sentence = words(d, err, &text);
	if (err == -EAGAIN) {
		wait = out.retry_named ? out.retry_after : next_backoff(d);
		say_retry(d, sentence, wait);
	} else if (err) {
		d->backoff = 0;
		if (err != -ECANCELED)
			say(d, sentence, err, ", a profile is lost");
	} else {
		d->backoff = 0;
		if (d->failing)
			log_info("%s: takes profiles again", d->instance->name);
		d->failing = false;
	}
	pthread_mutex_lock(&d->lock);
	d->current = NULL;
	d->stats.blocked_since = 0;
	snprintf(d->stats.last_error, sizeof(d->stats.last_error), "%s", text);
	if (__builtin_add_overflow(clock_now(), wait, &wait))
		wait = NEVER - 1;
	it = settle(d, it, err, wait);
	show_queue(d);
	pthread_cond_broadcast(&d->changed);
	pthread_mutex_unlock(&d->lock);
	item_free(it);
	free(sentence);
	pthread_mutex_lock(&d->lock);
	return err;
}

/* Called and left under the lock. */
static int flush_sink(struct delivery *d, uint64_t deadline)
{
	const char *text = "";
	char *sentence = NULL;
	int err;

	if (!FUSEE_HAS(d->ops, flush) || !d->ops->flush)
		return 0;
	d->stats.blocked_since = clock_now();
	pthread_mutex_unlock(&d->lock);
	err = d->ops->flush(d->instance->ctx, deadline);
	if (err)
		sentence = words(d, err, &text);
	if (err && err != -ECANCELED)
		say(d, sentence, err, "");
	pthread_mutex_lock(&d->lock);
	d->stats.blocked_since = 0;
	if (err)
		snprintf(d->stats.last_error, sizeof(d->stats.last_error), "%s", text);
	free(sentence);
	return err;
}

static bool over(const struct delivery *d)
{
	return d->stop && clock_now() >= d->deadline;
}

/* The first flush's answer, unless the keeper gave one. Called and left under the lock. */
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

static void run_flush(struct delivery *d)
{
	struct flush *f = d->flushes;
	int err = 0, held;

	f->running = true;
	while (d->head && d->head->order < f->order && !f->answered && !over(d)) {
		int one = try_one(d);

		err = one ? one : err;
		if (one == -EAGAIN)
			break;
	}
	held = f->answered ? 0 : flush_sink(d, f->deadline);
	answer(d, err ? err : held);
}

/* What is left is lost; the keeper goes too. */
static void end(struct delivery *d)
{
	struct item *left;
	uint64_t n = 0, samples = 0;

	flush_sink(d, d->deadline);
	left = d->head;
	d->head = NULL;
	d->last = &d->head;
	for (const struct item *it = left; it; it = it->next, n++) {
		leave(d, it);
		samples += it->samples;
	}
	if (n)
		count_lost(d, ENDED, n, samples);
	show_queue(d);
	d->ended = true;
	while (d->flushes)
		answer(d, -ECANCELED);
	pthread_cond_broadcast(&d->changed);
	pthread_mutex_unlock(&d->lock);
	item_free(left);
	pthread_mutex_lock(&d->lock);
}

static void destroy(struct delivery *d)
{
	instance_free(d->instance);
	item_free(d->head);
	pthread_cond_destroy(&d->changed);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

/* A thread's last step: the last one of a delivery that was given up cleans up. Under the lock. */
static void leave_thread(struct delivery *d)
{
	bool last = !--d->threads && d->given_up;

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

static void *work(void *arg)
{
	struct delivery *d = arg;

	name_thread(d);
	pthread_mutex_lock(&d->lock);
	for (;;) {
		uint64_t until = d->head ? d->retry_at : NEVER;

		if (d->stop && (!d->head || over(d) || until >= d->deadline) && !d->flushes)
			break;
		if (d->flushes)
			run_flush(d);
		else if (d->head && clock_now() >= until)
			try_one(d);
		else
			wait_until(d, until);
	}
	end(d);
	leave_thread(d);
	return NULL;
}

/* ---- the keeper ---- */

/* Under the lock: answers the flushes whose time is over, and says when the next one's is. */
static uint64_t keep_flushes(struct delivery *d)
{
	uint64_t next = NEVER, now = clock_now();
	struct flush late, *gone;

	for (struct flush **at = &d->flushes, *f; (f = *at);) {
		if (f->answered || f->deadline > now) {
			if (!f->answered && f->deadline < next)
				next = f->deadline;
			at = &f->next;
			continue;
		}
		f->answered = true; /* a running one is the worker's to free */
		gone = f->running ? NULL : f;
		late = *f;
		if (gone)
			*at = f->next;
		pthread_mutex_unlock(&d->lock);
		late.done(late.arg, -ETIMEDOUT);
		free(gone);
		pthread_mutex_lock(&d->lock);
		return 0; /* the list may be another one now */
	}
	return next;
}

static void *keep(void *arg)
{
	struct delivery *d = arg;

	name_thread(d);
	pthread_mutex_lock(&d->lock);
	while (!d->ended) {
		uint64_t until = keep_flushes(d);

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
	leave_thread(d);
	return NULL;
}

/* ---- what the control thread calls ---- */

/* Threads take no signal: those are the control thread's. */
static int start_threads(struct delivery *d)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int err;

	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, KEEPER_STACK);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_mutex_lock(&d->lock);
	err = -pthread_create(&d->keeper, &attr, keep, d);
	if (!err) {
		d->threads = 2;
		err = -pthread_create(&d->worker, NULL, work, d);
		d->threads -= err != 0;
		d->ended = err != 0;
	}
	pthread_mutex_unlock(&d->lock);
	if (err && d->threads)
		pthread_join(d->keeper, NULL);
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
	d->queue_bytes = o->queue_bytes;
	d->backoff_first = o->backoff_first_ns ? o->backoff_first_ns : BACKOFF_FIRST;
	d->backoff_most = o->backoff_most_ns ? o->backoff_most_ns : BACKOFF_MOST;
	if (d->backoff_most < d->backoff_first)
		d->backoff_most = d->backoff_first;
	d->random = clock_now() ^ (uintptr_t)d;
	d->random |= !d->random;
	d->last = &d->head;
	pthread_mutex_init(&d->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&d->changed, &attr);
	pthread_condattr_destroy(&attr);
	count_delivered(d, 0); /* so that rates begin at 0 */
	count_retried(d, 0);
	for (enum lost why = QUEUE_FULL; why <= ENDED; why++)
		count_lost(d, why, 0, 0);
	show_queue(d);
	in->owner = d;
	err = start_threads(d);
	if (err) {
		in->owner = NULL;
		pthread_cond_destroy(&d->changed);
		pthread_mutex_destroy(&d->lock);
		free(d);
		return err;
	}
	*ret = d;
	return 0;
}

void delivery_put(struct delivery *d, struct builder *b, const struct fusee_profile *p)
{
	struct item *it = calloc(1, sizeof(*it)), *dropped = NULL;
	uint64_t bytes = builder_bytes(b), samples = samples_of(p);
	bool kept = false;

	if (it)
		*it = (struct item){.builder = b, .profile = p, .bytes = bytes, .samples = samples};
	pthread_mutex_lock(&d->lock);
	if (d->stop) {
		count_lost(d, ENDED, 1, samples);
	} else if (!it || bytes > d->queue_bytes) {
		count_lost(d, QUEUE_FULL, 1, samples);
	} else {
		make_room(d, bytes, &dropped);
		it->order = d->order++;
		*d->last = it;
		d->last = &it->next;
		d->bytes += bytes;
		d->stats.queued++;
		kept = true;
		pthread_cond_broadcast(&d->changed);
	}
	show_queue(d);
	pthread_mutex_unlock(&d->lock);
	item_free(dropped);
	if (!kept && it)
		item_free(it);
	else if (!kept)
		builder_free(b);
}

void delivery_queue(struct delivery *d, uint64_t queue_bytes)
{
	struct item *dropped = NULL;

	pthread_mutex_lock(&d->lock);
	d->queue_bytes = queue_bytes;
	make_room(d, 0, &dropped);
	show_queue(d);
	pthread_mutex_unlock(&d->lock);
	item_free(dropped);
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
		*f = (struct flush){NULL, deadline_ns, d->order, done, arg, false, false};
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
	*ret = d->stats;
	ret->queued_bytes = queued_bytes(d);
	ret->retry_at = d->head && d->retry_at > clock_now() ? d->retry_at : 0;
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

/* Nobody is to be called back when this is gone. Under the lock. */
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

/* The threads do not end: what they have is lost, and they are on their own. Under the lock. */
static void give_up(struct delivery *d)
{
	uint64_t n = 0, samples = 0;

	for (const struct item *it = d->head; it; it = it->next, n++)
		samples += it->samples;
	if (d->current)
		samples += d->current->samples;
	n += d->current != NULL;
	count_lost(d, ENDED, n, samples);
	item_free(d->head);
	d->head = NULL;
	d->last = &d->head;
	d->bytes = d->stats.queued = 0;
	d->given_up = true;
	cancel_flushes(d);
	show_queue(d);
	log_warning("%s: does not end, although it was cancelled: its thread is left behind",
		    d->instance->name);
	pthread_detach(d->worker);
	pthread_detach(d->keeper);
}

bool delivery_ended(struct delivery *d)
{
	bool ended;

	pthread_mutex_lock(&d->lock);
	ended = !d->threads || d->given_up;
	pthread_mutex_unlock(&d->lock);
	return ended;
}

void delivery_free(struct delivery *d)
{
	uint64_t until;
	bool left;

	if (!d)
		return;
	pthread_mutex_lock(&d->lock);
	left = !d->stop;
	pthread_mutex_unlock(&d->lock);
	if (left)
		delivery_stop(d, 0);
	pthread_mutex_lock(&d->lock);
	until = d->deadline < NEVER - GIVE_UP ? d->deadline + GIVE_UP : NEVER;
	while (d->threads && clock_now() < until)
		wait_until(d, until);
	left = d->threads;
	if (left)
		give_up(d);
	pthread_mutex_unlock(&d->lock);
	if (left)
		return;
	pthread_join(d->worker, NULL);
	pthread_join(d->keeper, NULL);
	destroy(d);
}

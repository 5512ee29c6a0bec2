// SPDX-License-Identifier: Apache-2.0
/* The spool's thread of a delivery, which does all writing of files. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "delivery/internal/state.h"

#define OPEN_AGAIN (DELIVERY_SECOND / 10) /* while a delivery of the previous plan may have it */
#define BUSY_MAX (20 * DELIVERY_SECOND)   /* the longest that an ending delivery has it */
#define TRY_AGAIN (5 * DELIVERY_SECOND)   /* after any other failure */
#define LOG_INTERVAL (60 * DELIVERY_SECOND)

void delivery_count_spool(struct delivery *d)
{
	struct spool_counts c;

	spool_take_counts(d->spool.files, &c);
	pthread_mutex_lock(&d->lock);
	if (!d->abandoned)
		queue_spool_counts(&d->queue, &c);
	pthread_mutex_unlock(&d->lock);
}

/* ---- failures; locked ---- */

static void count_failures(const struct delivery *d, uint64_t n)
{
	metric_add("sink_spool_errors_total",
		   "Total number of failures to open or to write a sink's spool.",
		   METRIC_LABELS("instance", d->instance->name), n);
}

static void failed(struct delivery *d, const char *text)
{
	struct delivery_spool *s = &d->spool;
	uint64_t now = clock_now();

	s->state = SPOOL_FAILS;
	s->try_at = now + TRY_AGAIN;
	if (d->abandoned)
		return;
	snprintf(d->queue.stats.spool_error, sizeof(d->queue.stats.spool_error), "%s", text);
	count_failures(d, 1);
	if (s->logged_at && now - s->logged_at < LOG_INTERVAL)
		return;
	s->logged_at = now;
	log_warning("%s: %s; profiles wait in memory only", d->instance->name, text);
}

static void write_failed(struct delivery *d, int err)
{
	char text[512];

	snprintf(text, sizeof(text), "the spool %s cannot be written: %s", d->spool.dir,
		 strerror(-err));
	failed(d, text);
}

static void works(struct delivery *d)
{
	d->spool.state = SPOOL_WORKS;
	d->spool.try_at = 0;
	if (d->spool.logged_at)
		log_info("%s: the spool takes profiles again", d->instance->name);
	d->spool.logged_at = 0;
	*d->queue.stats.spool_error = '\0';
}

/* ---- steps of the thread; locked ---- */

static void open_failed(struct delivery *d, int err, const char *text)
{
	struct delivery_spool *s = &d->spool;
	uint64_t now = clock_now();

	if (err == -EWOULDBLOCK && !s->busy_since)
		s->busy_since = now;
	if (err == -EWOULDBLOCK && now - s->busy_since < BUSY_MAX && s->state == SPOOL_OPENING)
		s->try_at = now + OPEN_AGAIN;
	else
		failed(d, text);
}

static void open_files(struct delivery *d)
{
	struct delivery_spool *s = &d->spool;
	struct spool_limits limits = s->limits;
	struct spool *files = NULL;
	char *text = NULL;
	int r;

	s->limits_changed = false;
	pthread_mutex_unlock(&d->lock);
	r = spool_open(&files, s->dir, d->instance->name, &limits, &text);
	pthread_mutex_lock(&d->lock);
	if (r) {
		open_failed(d, r, text ? text : strerror(-r));
	} else {
		s->files = files;
		s->has_profiles = true;
		works(d);
		pthread_mutex_unlock(&d->lock);
		delivery_count_spool(d);
		pthread_mutex_lock(&d->lock);
		if (d->queue.stats.spooled)
			log_info("%s: %" PRIu64 " profiles wait in the spool %s", d->instance->name,
				 d->queue.stats.spooled, s->dir);
	}
	free(text);
	pthread_cond_broadcast(&d->changed);
}

/* The current item was written, or not. Returns it if it is to be freed. */
static struct queue_item *written(struct delivery *d, struct queue_item *it, int err)
{
	struct delivery_spool *s = &d->spool;

	if (!err) {
		s->has_profiles = true;
		if (!s->sync_at)
			s->sync_at = clock_now() + s->sync_ns;
		works(d);
	}
	if (d->abandoned)
		return it; /* abandon() counted it */
	if (!err) {
		queue_spooled(&d->queue);
		d->queue.stats.spooled++;
	} else if (err == -EMSGSIZE) {
		queue_current_lost(&d->queue, LOSS_SPOOL_FULL);
	} else {
		write_failed(d, err);
		if (!it->evicted) {
			queue_put_back(&d->queue);
			return NULL;
		}
		queue_current_lost(&d->queue, LOSS_QUEUE_FULL);
	}
	return it;
}

static void write_profile(struct delivery *d)
{
	struct queue_item *it = queue_take(&d->queue);
	int r;

	pthread_mutex_unlock(&d->lock);
	r = spool_append(d->spool.files, it->profile, it->samples);
	pthread_mutex_lock(&d->lock);
	it = written(d, it, r);
	pthread_cond_broadcast(&d->changed);
	pthread_mutex_unlock(&d->lock);
	queue_items_free(it);
	delivery_count_spool(d);
	pthread_mutex_lock(&d->lock);
}

static void sync_files(struct delivery *d)
{
	int r;

	d->spool.sync_at = 0;
	pthread_mutex_unlock(&d->lock);
	r = spool_sync(d->spool.files);
	pthread_mutex_lock(&d->lock);
	if (r)
		write_failed(d, r);
}

static void set_limits(struct delivery *d)
{
	struct spool_limits limits = d->spool.limits;

	d->spool.limits_changed = false;
	pthread_mutex_unlock(&d->lock);
	spool_limit(d->spool.files, &limits);
	delivery_count_spool(d);
	pthread_mutex_lock(&d->lock);
}

/* One step if there is something to do. Returns when the next is to be tried: 0 at once. */
static uint64_t step(struct delivery *d)
{
	struct delivery_spool *s = &d->spool;
	bool to_write = d->queue.head && !d->queue.current;
	uint64_t now = clock_now(), sync_at = s->sync_at ? s->sync_at : DELIVERY_NEVER;
	uint64_t try_at = !s->files || to_write ? s->try_at : DELIVERY_NEVER;

	if (s->files && s->limits_changed)
		set_limits(d);
	else if (s->files && now >= sync_at)
		sync_files(d);
	else if (now >= try_at)
		s->files ? write_profile(d) : open_files(d);
	else
		return try_at < sync_at ? try_at : sync_at;
	return 0;
}

/* After the end of the sink's thread: whether everything that can be written is written. */
static bool is_done(const struct delivery *d)
{
	return d->spool.sink_ended &&
	       (d->abandoned || !d->queue.head || d->spool.state != SPOOL_WORKS);
}

void *delivery_run_spool(void *arg)
{
	struct delivery *d = arg;

	delivery_name_thread(d);
	count_failures(d, 0); /* so that the metric exists from the start */
	pthread_mutex_lock(&d->lock);
	while (!is_done(d)) {
		uint64_t until = step(d);

		if (until && !is_done(d))
			delivery_wait(d, until);
	}
	if (d->spool.files) {
		sync_files(d);
		pthread_mutex_unlock(&d->lock);
		spool_close(d->spool.files);
		pthread_mutex_lock(&d->lock);
	}
	d->spool.files = NULL;
	d->spool.state = SPOOL_CLOSED;
	delivery_exit_thread(d);
	return NULL;
}

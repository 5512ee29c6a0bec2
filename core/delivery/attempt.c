// SPDX-License-Identifier: Apache-2.0
/* One attempt of the sink's thread to deliver a profile, from the queue or the spool. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "delivery/internal/state.h"

#define SECOND DELIVERY_SECOND
#define NEVER DELIVERY_NEVER
#define LOOK (2 * SECOND) /* between checks whether a secret has changed */

/* What consume() returned. */
struct outcome {
	int err;
	uint64_t wait_ns; /* until the next attempt */
	bool denied;
	bool parts; /* parts were lost, with `samples` */
	uint64_t samples;
	bool watch;       /* a changed secret ends the wait */
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
	o->parts = out.lost;
	o->samples = out.samples;
	o->denied = o->err == -EAGAIN && out.denied;
	o->watch = o->denied || (o->err == -EAGAIN && !out.retry_named);
	o->wait_ns = failures_consumed(&d->failures, o->err, o->sentence, &out);
}

/* Locked. Counts the samples of parts that were lost in this attempt. `samples`: those of the
 * profile that earlier attempts did not count. Returns how many then remain to be counted if the
 * profile is lost. */
static uint64_t count_parts(struct delivery *d, uint64_t samples, const struct outcome *o)
{
	uint64_t counted = o->samples < samples ? o->samples : samples;

	if (o->parts)
		queue_count_lost(&d->queue, LOSS_REFUSED, 0, counted);
	return samples - counted;
}

/* Whether every part was tried, so that no parts are lost besides those that count_parts()
 * counts. */
static bool others_delivered(const struct outcome *o)
{
	return o->parts && o->err != -ENOMEM && o->err != -ECANCELED;
}

static uint64_t now_plus(uint64_t ns)
{
	return __builtin_add_overflow(clock_now(), ns, &ns) ? NEVER - 1 : ns;
}

/* Locked. Counts the tried item or queues it again; returns it if it is to be freed. */
static struct queue_item *settle(struct delivery *d, struct queue_item *it, const struct outcome *o)
{
	enum loss_reason why = LOSS_REFUSED;

	if (d->abandoned)
		return it; /* abandon() counted it */
	it->samples = count_parts(d, it->samples, o);
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
	if (o->err == -ECANCELED && d->cancelled)
		why = LOSS_ENDED;
	else if (o->err == -EAGAIN)
		why = LOSS_QUEUE_FULL;
	else if (others_delivered(o))
		it->samples = 0;
	queue_current_lost(&d->queue, why);
	return it;
}

/* Locked. Tries an item; the result of consume(). */
static void try_item(struct delivery *d, struct queue_item *it, struct outcome *o)
{
	d->queue.stats.blocked_since = clock_now();
	pthread_mutex_unlock(&d->lock);
	consume(d, it, o);
	pthread_mutex_lock(&d->lock);
	d->queue.stats.blocked_since = 0;
	d->watch = o->watch;
	if (!d->abandoned)
		queue_set_denied(&d->queue, o->denied, !d->stop);
	snprintf(d->queue.stats.last_error, sizeof(d->queue.stats.last_error), "%s", o->text);
}

/* Locked. Tries the oldest item of the queue. */
static int attempt_queued(struct delivery *d)
{
	struct queue_item *it = queue_take(&d->queue);
	struct outcome o;

	try_item(d, it, &o);
	it = settle(d, it, &o);
	pthread_cond_broadcast(&d->changed);
	pthread_mutex_unlock(&d->lock);
	queue_items_free(it);
	free(o.sentence);
	pthread_mutex_lock(&d->lock);
	return o.err;
}

/* Locked. Counts the tried profile of the spool. False: it stays in the spool for another
 * attempt. */
static bool settle_spooled(struct delivery *d, struct spool_item *found, const struct outcome *o)
{
	bool ended = o->err == -ECANCELED && d->cancelled;

	if (o->err == -EAGAIN)
		d->retry_at = now_plus(o->wait_ns);
	if (!o->err)
		d->retry_at = 0;
	if (d->abandoned)
		return !o->err;
	found->samples = count_parts(d, found->samples, o);
	if (!o->err) {
		d->queue.stats.last_ok_ns = clock_now();
		queue_count_delivered(&d->queue);
	} else if (o->err == -EAGAIN) {
		queue_count_retried(&d->queue);
	} else if (!ended) {
		queue_count_lost(&d->queue, LOSS_REFUSED, 1,
				 others_delivered(o) ? 0 : found->samples);
	}
	return o->err != -EAGAIN && !ended;
}

/* Locked. The item is the spool's oldest. */
static int try_spooled(struct delivery *d, struct spool_item *found)
{
	struct queue_item it = {.profile = spool_profile_get(found->profile),
				.attempt = found->attempt};
	struct outcome o;
	bool done;

	try_item(d, &it, &o);
	done = settle_spooled(d, found, &o);
	pthread_mutex_unlock(&d->lock);
	if (done)
		spool_done(d->spool.files);
	else
		spool_keep(d->spool.files, found->samples);
	spool_profile_free(found->profile);
	delivery_encoded_fini(&it.encoded);
	free(o.sentence);
	pthread_mutex_lock(&d->lock);
	if (!d->spool.sync_at) /* the position was written */
		d->spool.sync_at = clock_now() + d->spool.sync_ns;
	return o.err;
}

/* Locked. Tries the oldest profile of the spool. The spool's thread sets has_profiles when it has
 * written another. */
static int attempt_spooled(struct delivery *d)
{
	struct spool_item found;
	int err;

	d->spool.has_profiles = false;
	pthread_mutex_unlock(&d->lock);
	err = spool_first(d->spool.files, &found);
	pthread_mutex_lock(&d->lock);
	if (!err) {
		d->spool.has_profiles = true;
		err = try_spooled(d, &found);
	} else if (err == -ENOENT) {
		err = DELIVERY_NOTHING;
	} else { /* no memory, no descriptor */
		d->spool.has_profiles = true;
		d->retry_at = now_plus(SECOND);
		err = -EAGAIN;
	}
	pthread_mutex_unlock(&d->lock);
	delivery_count_spool(d);
	pthread_mutex_lock(&d->lock);
	pthread_cond_broadcast(&d->changed);
	return err;
}

/* ---- until the next attempt ---- */

void delivery_rest(struct delivery *d, uint64_t until)
{
	uint64_t now = clock_now();
	bool changed;

	if (!d->watch || now < d->look_at) {
		delivery_wait(d, d->watch && d->look_at < until ? d->look_at : until);
		return;
	}
	d->look_at = now + LOOK;
	pthread_mutex_unlock(&d->lock);
	changed = instance_secret_changed(d->instance);
	pthread_mutex_lock(&d->lock);
	if (changed)
		d->retry_at = 0;
}

/* ---- the source of the next profile ---- */

enum delivery_source delivery_next_source(const struct delivery *d)
{
	if (!d->spool.dir)
		return d->queue.head ? QUEUE : NOWHERE;
	if (d->spool.state == SPOOL_OPENING)
		return NOWHERE;
	if (d->spool.files && d->spool.has_profiles)
		return SPOOL;
	/* Once try_at has come, the spool's thread tries to write first, but only if the spool is
	 * open: opening it can hang. */
	if (d->spool.state == SPOOL_FAILS && d->queue.head && !d->queue.current &&
	    (!d->spool.files || clock_now() < d->spool.try_at))
		return QUEUE;
	return NOWHERE;
}

bool delivery_is_coming(const struct delivery *d)
{
	return d->spool.dir && (d->queue.head || d->queue.current);
}

int delivery_attempt(struct delivery *d, enum delivery_source from)
{
	return from == SPOOL ? attempt_spooled(d) : attempt_queued(d);
}

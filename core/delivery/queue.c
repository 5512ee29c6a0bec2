/* SPDX-License-Identifier: Apache-2.0 */
#include "delivery/internal/queue.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/metrics.h"

/* ---- counts ---- */

void queue_count_lost(struct delivery_queue *q, enum loss_reason why, uint64_t profiles,
		      uint64_t samples)
{
	const struct metric_labels *labels = METRIC_LABELS("instance", q->instance, "reason",
							   loss_text(why));

	loss_account_add(&q->stats.losses, why, profiles);
	q->stats.samples_lost += samples;
	if (profiles)
		q->stats.last_lost_ns = clock_now();
	metric_add("sink_lost_total", "Total number of profiles lost before a sink took them.",
		   labels, profiles);
	metric_add("sink_samples_lost_total",
		   "Total number of samples in lost profiles and parts of profiles.", labels,
		   samples);
}

static void count_delivered(struct delivery_queue *q, uint64_t n)
{
	q->stats.delivered += n;
	metric_add("sink_delivered_total", "Total number of profiles that a sink took.",
		   METRIC_LABELS("instance", q->instance), n);
}

static void count_retried(struct delivery_queue *q, uint64_t n)
{
	q->stats.retried += n;
	metric_add("sink_retried_total",
		   "Total number of failed attempts after which a profile stayed queued.",
		   METRIC_LABELS("instance", q->instance), n);
}

static void update_gauges(const struct delivery_queue *q)
{
	const struct metric_labels *labels = METRIC_LABELS("instance", q->instance);

	metric_set("sink_queue_profiles", "Number of profiles queued for a sink.", labels,
		   (double)q->stats.queued);
	metric_set("sink_queue_bytes", "Memory in bytes of the profiles queued for a sink.", labels,
		   (double)queue_bytes(q));
}

void queue_set_denied(struct delivery_queue *q, bool denied, bool shown)
{
	if (!denied)
		q->stats.denied_since = 0;
	else if (!q->stats.denied_since)
		q->stats.denied_since = clock_now();
	if (shown)
		metric_set(
			"sink_denied",
			"1: the server denies a sink whatever it sends, until a token, a right or "
			"an address is mended.",
			METRIC_LABELS("instance", q->instance), denied);
}

/* ---- items ---- */

void queue_items_free(struct queue_item *it)
{
	while (it) {
		struct queue_item *next = it->next;

		delivery_encoded_fini(&it->encoded);
		builder_free(it->builder);
		free(it);
		it = next;
	}
}

static struct queue_item *pop(struct delivery_queue *q)
{
	struct queue_item *it = q->head;

	q->head = it->next;
	if (!q->head)
		q->last = &q->head;
	it->next = NULL;
	return it;
}

/* Subtracts an item that is not in the queue any more. */
static void subtract(struct delivery_queue *q, const struct queue_item *it)
{
	fusee_assert(q->stats.queued);
	fusee_assert(it->evicted || q->bytes >= it->bytes);
	if (!it->evicted)
		q->bytes -= it->bytes;
	q->stats.queued--;
}

/* The current item gives up its room last, because it may be delivered at any moment. */
static void make_room(struct delivery_queue *q, uint64_t bytes, struct queue_item **dropped)
{
	while (q->bytes > q->limit - bytes) {
		struct queue_item *it;

		if (!q->head) {
			if (!q->current || q->current->evicted)
				return;
			q->current->evicted = true;
			q->bytes -= q->current->bytes;
			continue;
		}
		it = pop(q);
		subtract(q, it);
		queue_count_lost(q, LOSS_QUEUE_FULL, 1, it->samples);
		it->next = *dropped;
		*dropped = it;
	}
}

/* ---- the queue ---- */

void queue_init(struct delivery_queue *q, const char *instance, uint64_t limit)
{
	*q = (struct delivery_queue){.instance = instance, .limit = limit};
	q->last = &q->head;
	count_delivered(q, 0); /* so that the metrics exist from the start */
	count_retried(q, 0);
	loss_account_init(&q->stats.losses);
	for (enum loss_reason why = LOSS_NONE; why < LOSS_REASONS; why++)
		if (loss_stage(why) == LOSS_DELIVERY)
			queue_count_lost(q, why, 0, 0);
	queue_set_denied(q, false, true);
	update_gauges(q);
}

void queue_put(struct delivery_queue *q, struct queue_item *it, struct queue_item **dropped)
{
	make_room(q, it->bytes, dropped);
	*q->last = it;
	q->last = &it->next;
	q->bytes += it->bytes;
	q->stats.queued++;
	update_gauges(q);
}

void queue_set_limit(struct delivery_queue *q, uint64_t limit, struct queue_item **dropped)
{
	q->limit = limit;
	make_room(q, 0, dropped);
	update_gauges(q);
}

struct queue_item *queue_take(struct delivery_queue *q)
{
	fusee_assert(!q->current);
	return q->current = pop(q);
}

static struct queue_item *end_current(struct delivery_queue *q)
{
	struct queue_item *it = q->current;

	q->current = NULL;
	subtract(q, it);
	return it;
}

void queue_delivered(struct delivery_queue *q)
{
	end_current(q);
	count_delivered(q, 1);
	update_gauges(q);
}

void queue_current_lost(struct delivery_queue *q, enum loss_reason why)
{
	queue_count_lost(q, why, 1, end_current(q)->samples);
	update_gauges(q);
}

void queue_put_back(struct delivery_queue *q)
{
	struct queue_item *it = end_current(q);

	it->bytes = builder_bytes(it->builder) + delivery_encoded_bytes(&it->encoded);
	it->next = q->head;
	if (!q->head)
		q->last = &it->next;
	q->head = it;
	q->bytes += it->bytes;
	q->stats.queued++;
	update_gauges(q);
}

void queue_retry(struct delivery_queue *q)
{
	q->current->attempt++;
	queue_put_back(q);
	count_retried(q, 1);
}

void queue_spooled(struct delivery_queue *q)
{
	end_current(q);
	update_gauges(q);
}

void queue_count_delivered(struct delivery_queue *q)
{
	count_delivered(q, 1);
}

void queue_count_retried(struct delivery_queue *q)
{
	count_retried(q, 1);
}

/* Two threads take counts and call this in any order. */
void queue_spool_counts(struct delivery_queue *q, const struct spool_counts *c)
{
	const struct metric_labels *labels = METRIC_LABELS("instance", q->instance);

	queue_count_lost(q, LOSS_SPOOL_FULL, c->full.profiles, c->full.samples);
	queue_count_lost(q, LOSS_TOO_OLD, c->old.profiles, c->old.samples);
	queue_count_lost(q, LOSS_DAMAGED, c->damaged.profiles, c->damaged.samples);
	if (c->turn <= q->spool_turn)
		return;
	q->spool_turn = c->turn;
	q->stats.spooled = c->profiles;
	q->stats.spooled_bytes = c->bytes;
	q->stats.spooled_oldest_ns = c->oldest_ns;
	metric_set("sink_spool_profiles", "Number of profiles in a sink's spool.", labels,
		   (double)c->profiles);
	metric_set("sink_spool_bytes", "Size in bytes of the profiles in a sink's spool.", labels,
		   (double)c->bytes);
	metric_set("sink_spool_oldest_timestamp_seconds",
		   "When the oldest profile in a sink's spool was written; 0: there is none.",
		   labels, (double)c->oldest_ns / 1e9);
}

struct queue_item *queue_lose_all(struct delivery_queue *q, enum loss_reason why)
{
	struct queue_item *all = q->head;
	uint64_t n = 0, samples = 0;

	q->head = NULL;
	q->last = &q->head;
	for (const struct queue_item *it = all; it; it = it->next, n++) {
		subtract(q, it);
		samples += it->samples;
	}
	queue_count_lost(q, why, n, samples);
	update_gauges(q);
	return all;
}

uint64_t queue_bytes(const struct delivery_queue *q)
{
	return q->bytes + (q->current && q->current->evicted ? q->current->bytes : 0);
}

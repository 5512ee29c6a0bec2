/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bounded queue of one delivery, and its counts: every profile that is put is delivered, or
 * lost for a reason, or still queued. Under the delivery's lock; but an item that is `current`
 * belongs to the sink's thread, except for its `evicted`. Part of delivery.c.
 */
#ifndef DELIVERY_QUEUE_H
#define DELIVERY_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "delivery/delivery.h"
#include "delivery/sink_out.h"
#include "spool/spool.h"

struct queue_item {
	struct queue_item *next;
	struct builder *builder; /* owns the profile */
	const struct fusee_profile *profile;
	struct delivery_encoded encoded;
	uint64_t bytes;   /* builder and encoded formats */
	uint64_t samples; /* that the profile represents */
	uint32_t attempt; /* from 0 */
	bool evicted;     /* current, and its bytes were given to another item */
};

struct delivery_queue {
	const char *instance; /* name, for metrics */
	struct queue_item *head, **last;
	struct queue_item *current; /* removed from the queue and in consume(); NULL: none */
	uint64_t limit;             /* bytes */
	uint64_t bytes;             /* of all items and current, without evicted */
	uint64_t spool_turn;        /* of the newest counts from the spool */
	struct delivery_stats stats;
};

void queue_init(struct delivery_queue *, const char *instance, uint64_t limit);
/* Appends an item that is not larger than the limit. The oldest items are dropped for it: they are
 * counted as lost and put in front of *dropped, for queue_items_free(). */
void queue_put(struct delivery_queue *, struct queue_item *, struct queue_item **dropped);
void queue_set_limit(struct delivery_queue *, uint64_t limit, struct queue_item **dropped);
/* The oldest item becomes current. There must be one. */
struct queue_item *queue_take(struct delivery_queue *);
/* The current item was delivered, or is lost. The caller frees it. */
void queue_delivered(struct delivery_queue *);
void queue_current_lost(struct delivery_queue *, enum loss_reason);
/* The current item becomes the oldest of the queue again, for another attempt. */
void queue_retry(struct delivery_queue *);
/* The same, but no attempt was made. */
void queue_put_back(struct delivery_queue *);
/* The current item waits in the spool now. The caller frees it. */
void queue_spooled(struct delivery_queue *);
/* Adds the spool's counts. */
void queue_spool_counts(struct delivery_queue *, const struct spool_counts *);
/* A profile of the spool was delivered, or is to be tried again. */
void queue_count_delivered(struct delivery_queue *);
void queue_count_retried(struct delivery_queue *);
/* Sets whether the last attempt was denied. shown: also in the metric, which a delivery that ends
 * leaves to its successor of the same name. */
void queue_set_denied(struct delivery_queue *, bool denied, bool shown);
/* Counts profiles that are not, or no longer, in the queue. */
void queue_count_lost(struct delivery_queue *, enum loss_reason, uint64_t profiles,
		      uint64_t samples);
/* Removes the queued items, counts them, and returns them for queue_items_free(). */
struct queue_item *queue_lose_all(struct delivery_queue *, enum loss_reason);
/* Bytes of the queued items and of the current item. */
uint64_t queue_bytes(const struct delivery_queue *);
void queue_items_free(struct queue_item *); /* a list; without the lock. NULL is fine */
#endif

// SPDX-License-Identifier: Apache-2.0
#include "delivery/internal/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"

void delivery_wait(struct delivery *d, uint64_t until)
{
	struct timespec t = clock_until(until);

	if (until == DELIVERY_NEVER)
		pthread_cond_wait(&d->changed, &d->lock);
	else
		pthread_cond_timedwait(&d->changed, &d->lock, &t);
}

void delivery_name_thread(const struct delivery *d)
{
	char name[16];

	snprintf(name, sizeof(name), "%s", d->instance->name);
	pthread_setname_np(pthread_self(), name);
}

void delivery_init_lock(struct delivery *d)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&d->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&d->changed, &attr);
	pthread_condattr_destroy(&attr);
}

static void destroy_lock(struct delivery *d)
{
	pthread_cond_destroy(&d->changed);
	pthread_mutex_destroy(&d->lock);
}

void delivery_destroy(struct delivery *d)
{
	instance_free(d->instance);
	queue_items_free(d->queue.head);
	destroy_lock(d);
	free(d->spool.dir);
	free(d);
}

void delivery_exit_thread(struct delivery *d)
{
	bool last = !--d->threads && d->abandoned;

	pthread_cond_broadcast(&d->changed);
	pthread_mutex_unlock(&d->lock);
	if (last)
		delivery_destroy(d);
}

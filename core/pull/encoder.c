// SPDX-License-Identifier: Apache-2.0
#include "pull/encoder.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "pprof/pprof.h"

#define RETRY_NS 10000000 /* without memory for the call */

struct pull_encoder {
	struct loop *loop;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct pull_encoding *first, **last; /* under the lock */
	bool ends;                           /* under the lock */
};

/* The next encoding; NULL: the thread is to end. */
static struct pull_encoding *take(struct pull_encoder *e)
{
	struct pull_encoding *next = NULL;

	pthread_mutex_lock(&e->lock);
	while (!e->first && !e->ends)
		pthread_cond_wait(&e->changed, &e->lock);
	if (!e->ends) {
		next = e->first;
		e->first = next->next;
		if (!e->first)
			e->last = &e->first;
	}
	pthread_mutex_unlock(&e->lock);
	return next;
}

static bool is_ending(struct pull_encoder *e)
{
	bool ends;

	pthread_mutex_lock(&e->lock);
	ends = e->ends;
	pthread_mutex_unlock(&e->lock);
	return ends;
}

static void *run(void *arg)
{
	struct pull_encoder *e = arg;
	struct pull_encoding *next;

	while ((next = take(e))) {
		next->err = pprof_encode(next->profile, true, &next->bytes);
		builder_free(next->builder);
		next->builder = NULL;
		while (loop_post(e->loop, next->done, next->arg) && !is_ending(e))
			nanosleep(&(struct timespec){.tv_nsec = RETRY_NS}, NULL);
	}
	return NULL;
}

int pull_encoder_new(struct pull_encoder **ret, struct loop *loop)
{
	struct pull_encoder *e = calloc(1, sizeof(*e));
	int err;

	if (!e)
		return -ENOMEM;
	e->loop = loop;
	e->last = &e->first;
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->changed, NULL);
	err = pthread_create(&e->thread, NULL, run, e);
	if (err) {
		free(e);
		return -err;
	}
	pthread_setname_np(e->thread, "pulls");
	*ret = e;
	return 0;
}

void pull_encoder_add(struct pull_encoder *e, struct pull_encoding *n)
{
	pthread_mutex_lock(&e->lock);
	n->next = NULL;
	*e->last = n;
	e->last = &n->next;
	pthread_cond_signal(&e->changed);
	pthread_mutex_unlock(&e->lock);
}

void pull_encoder_free(struct pull_encoder *e)
{
	if (!e)
		return;
	pthread_mutex_lock(&e->lock);
	e->ends = true;
	pthread_cond_signal(&e->changed);
	pthread_mutex_unlock(&e->lock);
	pthread_join(e->thread, NULL);
	pthread_cond_destroy(&e->changed);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

void pull_encoding_fini(struct pull_encoding *n)
{
	builder_free(n->builder);
	buf_fini(&n->bytes);
}

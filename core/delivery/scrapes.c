/* SPDX-License-Identifier: Apache-2.0 */
#include "delivery/scrapes.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct waiting {
	struct waiting *next;
	struct scraped *profile;
};

struct scrapes {
	struct loop *loop;
	void (*deliver)(void *arg, struct scraped *);
	void *arg;
	/* Held while a profile is decoded, so that hostile bytes take the memory of one. */
	pthread_mutex_t decoding;
	pthread_mutex_t lock; /* of what follows */
	struct waiting *first, **last;
	uint64_t bytes; /* of all that wait */
};

int scrapes_new(struct scrapes **ret, struct loop *loop,
		void (*deliver)(void *arg, struct scraped *), void *arg)
{
	struct scrapes *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->loop = loop;
	s->deliver = deliver;
	s->arg = arg;
	s->last = &s->first;
	pthread_mutex_init(&s->decoding, NULL);
	pthread_mutex_init(&s->lock, NULL);
	*ret = s;
	return 0;
}

/* On the loop's thread. */
static void deliver_all(void *arg)
{
	struct scrapes *s = arg;
	struct waiting *all, *next;

	pthread_mutex_lock(&s->lock);
	all = s->first;
	s->first = NULL;
	s->last = &s->first;
	s->bytes = 0;
	pthread_mutex_unlock(&s->lock);
	for (; all; all = next) {
		next = all->next;
		s->deliver(s->arg, all->profile);
		scraped_free(all->profile);
		free(all);
	}
}

/* Takes the profile over. */
static int put(struct scrapes *s, struct scraped *profile, const char **why)
{
	struct waiting *w = malloc(sizeof(*w));
	uint64_t bytes = scraped_bytes(profile);
	bool first;
	int r = 0;

	*why = "no memory";
	if (!w) {
		scraped_free(profile);
		return -ENOMEM;
	}
	*w = (struct waiting){NULL, profile};
	pthread_mutex_lock(&s->lock);
	first = !s->first;
	if (!first && s->bytes + bytes > SCRAPES_MAX_WAITING) {
		*why = "too many profiles wait for the control thread";
		r = -EAGAIN;
	} else if (first) {
		r = loop_post(s->loop, deliver_all, s);
	}
	if (!r) {
		*s->last = w;
		s->last = &w->next;
		s->bytes += bytes;
	}
	pthread_mutex_unlock(&s->lock);
	if (r) {
		scraped_free(profile);
		free(w);
	}
	return r;
}

int scrapes_take(void *arg, const struct fusee_pprof *p, char *why, uint32_t cap)
{
	struct scrapes *s = arg;
	struct scraped *profile;
	const char *text;
	int r;

	pthread_mutex_lock(&s->decoding);
	r = scraped_new(&profile, p, &text);
	pthread_mutex_unlock(&s->decoding);
	if (!r)
		r = put(s, profile, &text);
	snprintf(why, cap, "%s", r ? text : "");
	return r;
}

void scrapes_free(struct scrapes *s)
{
	if (!s)
		return;
	for (struct waiting *w = s->first, *next; w; w = next) {
		next = w->next;
		scraped_free(w->profile);
		free(w);
	}
	pthread_mutex_destroy(&s->decoding);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

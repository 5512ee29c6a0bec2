// SPDX-License-Identifier: Apache-2.0
/* Refused files. */
#include "worker/refusals.h"

#include <stdlib.h>
#include <string.h>

static void refusal_free(struct refusal *r)
{
	free(r->name);
	free(r->text);
	free(r);
}

static void drop_oldest(struct refusals *all)
{
	struct refusal **p = &all->first;

	while (*p && (*p)->next)
		p = &(*p)->next;
	if (!*p)
		return;
	refusal_free(*p);
	*p = NULL;
	all->n--;
}

void refusals_add(struct refusals *all, const struct stat *st, const uint8_t *key, int err,
		  const char *name, const char *text)
{
	struct refusal *r = calloc(1, sizeof(*r));

	if (!r)
		return;
	r->name = strdup(name);
	r->text = strdup(text);
	if (!r->name || !r->text) {
		refusal_free(r);
		return;
	}
	r->dev = st->st_dev;
	r->ino = st->st_ino;
	r->size = (uint64_t)st->st_size;
	r->mtime = st->st_mtim;
	r->ctime = st->st_ctim;
	r->err = err;
	if (key) {
		r->keyed = true;
		memcpy(r->key, key, sizeof(r->key));
	}
	if (all->n == REFUSALS_MAX)
		drop_oldest(all);
	r->next = all->first;
	all->first = r;
	all->n++;
}

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

const struct refusal *refusals_find(const struct refusals *all, const struct stat *st,
				    const uint8_t *key)
{
	for (const struct refusal *r = all->first; r; r = r->next) {
		if (key && r->keyed && !memcmp(r->key, key, sizeof(r->key)))
			return r;
		/* An inode that was not written to since. */
		if (st && r->ino == st->st_ino && r->dev == st->st_dev &&
		    r->size == (uint64_t)st->st_size && same_time(r->mtime, st->st_mtim) &&
		    same_time(r->ctime, st->st_ctim))
			return r;
	}
	return NULL;
}

void refusals_fini(struct refusals *all)
{
	while (all->first) {
		struct refusal *next = all->first->next;

		refusal_free(all->first);
		all->first = next;
	}
	all->n = 0;
}

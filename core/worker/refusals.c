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

void refusals_add(struct refusals *all, const struct refusal *from)
{
	struct refusal *r = calloc(1, sizeof(*r));

	if (!r)
		return;
	*r = *from;
	r->name = strdup(from->name);
	r->text = strdup(from->text);
	if (!r->name || !r->text) {
		refusal_free(r);
		return;
	}
	if (all->n == REFUSALS_MAX)
		drop_oldest(all);
	r->next = all->first;
	all->first = r;
	all->n++;
}

static bool is_same_content(const struct refusal *r, const struct owner_file *file,
			    const uint8_t *key)
{
	return key && r->keyed && owner_equal(&r->file.owner, &file->owner) &&
	       !memcmp(r->key, key, sizeof(r->key));
}

/* An inode that was not written to since. */
static bool is_same_inode(const struct refusal *r, const struct owner_file *file)
{
	return r->file.dev == file->dev &&
	       !memcmp(&r->file.identity, &file->identity, sizeof(file->identity));
}

const struct refusal *refusals_find(const struct refusals *all, const struct owner_file *file,
				    const uint8_t *key)
{
	for (const struct refusal *r = all->first; r; r = r->next)
		if (r->err && (is_same_content(r, file, key) || is_same_inode(r, file)))
			return r;
	return NULL;
}

uint64_t refusals_skip(const struct refusals *all, const struct owner_file *file,
		       const uint8_t key[32])
{
	uint64_t skip = 0;

	for (const struct refusal *r = all->first; r; r = r->next)
		if (!r->err && is_same_content(r, file, key))
			skip |= r->skip;
	return skip;
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

// SPDX-License-Identifier: Apache-2.0
/* Refused files. */
#include "worker/internal/refusals.h"

#include <inttypes.h>
#include <stdio.h>
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

/* ---- as text ---- */

/* The key is not written, as it is a worker's answer. */
void refusals_write(const struct refusals *all, struct buf *b)
{
	const struct refusal *r = all->first;
	const struct owner_identity *i = r ? &r->file.identity : NULL;
	size_t at = b->len;

	if (!r || !r->err)
		return;
	buf_printf(b,
		   "%" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64
		   " %" PRIx32 " %" PRIx32 " %d ",
		   r->file.dev, i->fsid, i->ino, i->size, (uint64_t)i->mtime_ns,
		   (uint64_t)i->ctime_ns, i->uid, i->mode, r->err);
	buf_printf(b, "%s\t%s", r->name, r->text);
	for (; !b->error && at < b->len; at++)
		if (b->p[at] == '\n')
			b->p[at] = ' ';
	buf_str(b, "\n");
}

/* Adds the refusal of a line, which is modified. */
static void read_line(struct refusals *all, char *line)
{
	struct refusal r = {0};
	struct owner_identity *i = &r.file.identity;
	uint64_t mtime, ctime;
	int used = 0;

	if (sscanf(line,
		   "%" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64
		   " %" SCNx32 " %" SCNx32 " %d %n",
		   &r.file.dev, &i->fsid, &i->ino, &i->size, &mtime, &ctime, &i->uid, &i->mode,
		   &r.err, &used) != 9 ||
	    !used || r.err >= 0 || r.err < -4095)
		return;
	i->mtime_ns = (int64_t)mtime;
	i->ctime_ns = (int64_t)ctime;
	r.name = line + used;
	r.text = strchr(r.name, '\t');
	if (!r.text)
		return;
	*r.text++ = 0;
	refusals_add(all, &r);
}

void refusals_read(struct refusals *all, const char *text)
{
	char *copy = strdup(text), *save = NULL;

	for (char *line = copy ? strtok_r(copy, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save))
		read_line(all, line);
	free(copy);
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

// SPDX-License-Identifier: Apache-2.0
/*
 * The tables are written as they are in memory, element by element; a pointer to a text is written
 * as its place in the texts, which come last. So the memory that was read becomes the decoded
 * profile.
 */
#include "spool/internal/profile.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/dict.h"
#include "profile/check.h"

#define HEAD offsetof(struct fusee_profile, strings) /* bytes before the tables */
#define LABEL_TEXTS 3u                               /* key, str, unit */

/* A table of struct fusee_profile. */
struct shape {
	size_t at;      /* offset in the profile */
	uint32_t size;  /* of an element */
	uint32_t texts; /* struct fusee_str at the beginning of an element */
};

#define TABLE(member, type, texts)                                            \
	{                                                                     \
		offsetof(struct fusee_profile, member), sizeof(type), (texts) \
	}

/* In the order of the struct; further tables can only be added at the end. */
static const struct shape shapes[] = {
	TABLE(strings, struct fusee_str, 1),
	TABLE(functions, struct fusee_function, 0),
	TABLE(mappings, struct fusee_mapping, 0),
	TABLE(lines, struct fusee_line, 0),
	TABLE(locations, struct fusee_location, 0),
	TABLE(stack_locations, uint32_t, 0),
	TABLE(stacks, struct fusee_stack, 0),
	TABLE(types, struct fusee_value_type, 0),
	TABLE(samples, struct fusee_sample, 0),
	TABLE(labels, struct fusee_label, LABEL_TEXTS),
	TABLE(times, uint64_t, 0),
	TABLE(values, int64_t, 0),
	TABLE(resource, struct fusee_label, LABEL_TEXTS),
	TABLE(losses, struct fusee_label, LABEL_TEXTS),
	TABLE(comments, struct fusee_str, 1),
};

enum { TABLES = sizeof(shapes) / sizeof(*shapes) };

struct spool_profile {
	struct fusee_profile profile;
	void *bytes;           /* that the tables and texts are in */
	void *widened[TABLES]; /* tables whose elements were smaller when they were written */
};

static uint64_t padded(uint64_t n)
{
	return (n + 7) & ~7ull;
}

/* ---- to bytes ---- */

struct texts {
	struct dict ids;
	struct buf places; /* uint64_t by id */
	struct buf bytes;
};

/* The place of a text, from 1; 0: NULL. Equal texts have one place. */
static int place(struct texts *t, struct fusee_str s, uint64_t *ret)
{
	uint64_t at = t->bytes.len;
	uint32_t before = t->ids.n, id;

	*ret = 0;
	if (!s.p)
		return 0;
	if (s.len >= UINT32_MAX)
		return -ENOMEM;
	id = dict_add(&t->ids, s.p, s.len);
	if (id == DICT_NONE)
		return -ENOMEM;
	if (id == before &&
	    (buf_add(&t->places, &at, sizeof(at)) || buf_add(&t->bytes, s.p, s.len)))
		return -ENOMEM;
	memcpy(&at, t->places.p + id * sizeof(at), sizeof(at));
	*ret = at + 1;
	return 0;
}

static int add_element(struct texts *t, const struct shape *s, const void *from, size_t len,
		       char *to)
{
	memset(to, 0, s->size);
	memcpy(to, from, len < s->size ? len : s->size);
	for (uint32_t k = 0; k < s->texts; k++) {
		struct fusee_str text;
		uint64_t at;

		memcpy(&text, to + k * sizeof(text), sizeof(text));
		if (place(t, text, &at))
			return -ENOMEM;
		memcpy(to + k * sizeof(text), &at, sizeof(at));
	}
	return 0;
}

static int add_table(struct texts *t, const struct fusee_profile *p, const struct shape *s,
		     struct buf *out)
{
	const struct fusee_table *table = (const void *)((const char *)p + s->at);
	uint64_t bytes = (uint64_t)table->n * s->size, pad = padded(bytes) - bytes;
	const uint32_t head[2] = {table->n, s->size};
	char *to;

	buf_add(out, head, sizeof(head));
	to = buf_grow(out, bytes + pad);
	if (!to)
		return -ENOMEM;
	memset(to + bytes, 0, pad);
	for (uint32_t i = 0; i < table->n; i++)
		if (add_element(t, s, FUSEE_AT(char, *table, i), table->stride,
				to + (uint64_t)i * s->size))
			return -ENOMEM;
	return 0;
}

int spool_profile_encode(const struct fusee_profile *p, struct buf *out)
{
	const uint32_t head[2] = {HEAD, TABLES};
	const uint64_t zero = 0;
	struct texts t = {0};
	int r = dict_init(&t.ids);

	if (!r)
		r = buf_add(&t.places, &zero, sizeof(zero)); /* of id 0, the empty text */
	buf_add(out, head, sizeof(head));
	buf_add(out, p, HEAD);
	for (uint32_t i = 0; !r && i < TABLES; i++)
		r = add_table(&t, p, &shapes[i], out);
	if (!r)
		r = buf_add(out, t.bytes.p, t.bytes.len);
	dict_fini(&t.ids);
	buf_fini(&t.places);
	buf_fini(&t.bytes);
	return r;
}

/* ---- from bytes ---- */

struct reader {
	char *at;
	uint64_t remaining;
};

/* NULL: there are fewer bytes. */
static char *take(struct reader *r, uint64_t n)
{
	char *at = r->at;

	if (n > r->remaining)
		return NULL;
	r->at += n;
	r->remaining -= n;
	return at;
}

/* Elements that were smaller when they were written get their new members, which are 0. */
static int widen(struct spool_profile *sp, uint32_t i, struct fusee_table *t)
{
	char *to = calloc((size_t)t->n + 1, shapes[i].size);

	if (!to)
		return -ENOMEM;
	for (uint32_t k = 0; k < t->n; k++)
		memcpy(to + (uint64_t)k * shapes[i].size, FUSEE_AT(char, *t, k), t->stride);
	sp->widened[i] = to;
	*t = (struct fusee_table){to, t->n, shapes[i].size};
	return 0;
}

static int take_table(struct spool_profile *sp, uint32_t i, struct reader *r)
{
	struct fusee_table *t = (void *)((char *)&sp->profile + shapes[i].at);
	uint32_t align = shapes[i].size % 8 ? 4 : 8, head[2];
	const char *at = take(r, sizeof(head));

	if (!at)
		return -EBADMSG;
	memcpy(head, at, sizeof(head));
	if (!head[1] || head[1] % align || (shapes[i].texts && head[1] != shapes[i].size))
		return -EBADMSG;
	at = take(r, padded((uint64_t)head[0] * head[1]));
	if (!at)
		return -EBADMSG;
	*t = (struct fusee_table){at, head[0], head[1]};
	return head[1] < shapes[i].size ? widen(sp, i, t) : 0;
}

static bool link_texts(struct spool_profile *sp, const struct shape *s, const struct reader *texts)
{
	const struct fusee_table *t = (const void *)((const char *)&sp->profile + s->at);

	for (uint32_t i = 0; i < t->n; i++) {
		struct fusee_str *text = (void *)((char *)t->at + (uint64_t)i * t->stride);

		for (uint32_t k = 0; k < s->texts; k++, text++) {
			uint64_t at = (uintptr_t)text->p;

			if (at ? at - 1 > texts->remaining ||
					    text->len > texts->remaining - (at - 1)
			       : text->len)
				return false;
			text->p = at ? texts->at + (at - 1) : NULL;
		}
	}
	return true;
}

static int decode(struct spool_profile *sp, struct reader r)
{
	uint32_t head[2];
	const char *at = take(&r, sizeof(head));
	int err = 0;

	if (!at)
		return -EBADMSG;
	memcpy(head, at, sizeof(head));
	at = head[0] % 8 || head[1] != TABLES ? NULL : take(&r, head[0]);
	if (!at)
		return -EBADMSG;
	memcpy(&sp->profile, at, head[0] < HEAD ? head[0] : HEAD);
	sp->profile.size = sizeof(sp->profile);
	for (uint32_t i = 0; !err && i < TABLES; i++)
		err = take_table(sp, i, &r);
	for (uint32_t i = 0; !err && i < TABLES; i++)
		if (shapes[i].texts && !link_texts(sp, &shapes[i], &r))
			err = -EBADMSG;
	if (!err && (!profile_check(&sp->profile) ||
		     (sp->profile.types.n && sp->profile.default_type >= sp->profile.types.n)))
		err = -EBADMSG;
	return err;
}

int spool_profile_decode(void *bytes, size_t len, struct spool_profile **ret)
{
	struct spool_profile *sp = calloc(1, sizeof(*sp));
	int r = sp ? 0 : -ENOMEM;

	if (r) {
		free(bytes);
		return r;
	}
	sp->bytes = bytes;
	r = decode(sp, (struct reader){bytes, len});
	if (r)
		spool_profile_free(sp);
	else
		*ret = sp;
	return r;
}

const struct fusee_profile *spool_profile_get(const struct spool_profile *sp)
{
	return &sp->profile;
}

void spool_profile_free(struct spool_profile *sp)
{
	if (!sp)
		return;
	for (uint32_t i = 0; i < TABLES; i++)
		free(sp->widened[i]);
	free(sp->bytes);
	free(sp);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/same_frames.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/dict.h"

#define MOST_NAMES 32768u
#define MORE_KNOWN 16384u    /* frames that may be known beside two of each name */
#define FEW 4u               /* one of so many frames had another's names: it is not worth it */
#define PASSED_ON (1u << 22) /* frames that are not looked at then */

/* Which names a frame has, in place of the names. */
struct names_key {
	uint64_t process;
	uint64_t digest[2];
	uint32_t unwinder, frames;
};

struct same_frames {
	struct dict known; /* struct walk_frame */
	uint32_t *names;   /* by id of known: the id in `all`; 0: the frame stays as it is */
	size_t nnames;
	struct dict all;          /* struct names_key */
	struct walk_frame *first; /* by id of all */
	size_t nfirst;
	uint32_t added, again; /* frames since all were forgotten; with names that another had */
	uint32_t passing;      /* frames that are still passed on as they are */
};

/* ---- names ---- */

struct digest {
	struct fusee_frame_out out; /* first */
	struct names_key key;
	bool incomplete; /* lines may become known later */
};

static void mix(struct names_key *k, uint64_t word)
{
	k->digest[0] = (k->digest[0] ^ word) * 0x9e3779b97f4a7c15ull;
	k->digest[0] ^= k->digest[0] >> 32;
	k->digest[1] = (k->digest[1] + word) * 0xc2b2ae3d27d4eb4full;
	k->digest[1] ^= k->digest[1] >> 29;
}

static void mix_text(struct names_key *k, const struct fusee_str *s)
{
	uint64_t word;

	mix(k, s->len);
	for (uint64_t i = 0; i < s->len; i += 8) {
		word = 0;
		memcpy(&word, s->p + i, s->len - i < 8 ? s->len - i : 8);
		mix(k, word);
	}
}

static int take(struct fusee_frame_out *out, const struct fusee_source_frame *f)
{
	struct digest *d = (struct digest *)out;

	d->incomplete |= !f->function.len || !(f->line || f->flags & FUSEE_FRAME_BUILTIN);
	mix_text(&d->key, &f->function);
	mix_text(&d->key, &f->system_name);
	mix_text(&d->key, &f->file);
	mix(&d->key, (uint64_t)f->line << 32 | f->column);
	mix(&d->key, (uint64_t)f->start_line << 32 | f->flags);
	d->key.frames++;
	return 0;
}

/* 0: they are not known, or not completely. */
static bool names_of(struct claims *c, const struct walk_frame *f, struct names_key *key)
{
	struct digest d = {.out = {take},
			   .key = {.process = f->process, .unwinder = f->generation}};
	struct fusee_raw_frame raw = {.v = {f->addr, f->extra[0], f->extra[1], f->extra[2]},
				      .flags = f->flags};
	const char *type;

	mix(&d.key, (uint64_t)f->flags << 32 | f->guessed);
	if (claims_symbolize_pushed(c, f->process, f->generation, &raw, &d.out, &type) <= 0)
		return false;
	*key = d.key;
	return d.key.frames && !d.incomplete;
}

/* ---- what is known ---- */

static void forget_known(struct same_frames *s)
{
	dict_fini(&s->known);
	free(s->names);
	s->names = NULL;
	s->nnames = 0;
}

static void forget(struct same_frames *s)
{
	forget_known(s);
	dict_fini(&s->all);
	free(s->first);
	s->first = NULL;
	s->nfirst = 0;
	if (s->again < s->added / FEW)
		s->passing = PASSED_ON;
	s->added = s->again = 0;
}

/* Makes room for index id. 0 or -ENOMEM. */
static int grow(void *array, size_t *n, uint32_t id, size_t size)
{
	size_t count = *n ? *n : 64;
	void *old, *grown;

	while (count <= id)
		count *= 2;
	if (count == *n)
		return 0;
	memcpy(&old, array, sizeof(old));
	grown = realloc(old, count * size);
	if (!grown)
		return -ENOMEM;
	memcpy(array, &grown, sizeof(grown));
	*n = count;
	return 0;
}

/* Keeps the limits, and makes the dictionaries. 0 or -ENOMEM. */
static int make_room(struct same_frames *s)
{
	if (s->all.n > MOST_NAMES)
		forget(s);
	else if (s->known.n > MORE_KNOWN + 2 * s->all.n)
		forget_known(s);
	if ((!s->all.n && dict_init(&s->all)) || (!s->known.n && dict_init(&s->known)))
		return -ENOMEM;
	return 0;
}

/* The id of the frame's names. 0: it stays as it is. */
static uint32_t names_id(struct same_frames *s, struct claims *c, const struct walk_frame *f)
{
	struct names_key key;
	uint32_t id, before = s->all.n;

	if (!names_of(c, f, &key))
		return 0;
	id = dict_add(&s->all, &key, sizeof(key));
	if (id == DICT_NONE || grow(&s->first, &s->nfirst, id, sizeof(*s->first)))
		return 0;
	if (s->all.n > before)
		s->first[id] = *f;
	else
		s->again++;
	return id;
}

static void replace(struct same_frames *s, struct claims *c, struct walk_frame *f)
{
	uint32_t id = s->known.n ? dict_find(&s->known, f, sizeof(*f)) : DICT_NONE, names;

	if (id == DICT_NONE) {
		if (make_room(s) || s->passing)
			return;
		names = names_id(s, c, f);
		id = dict_add(&s->known, f, sizeof(*f));
		if (id == DICT_NONE)
			return;
		if (grow(&s->names, &s->nnames, id, sizeof(*s->names))) {
			forget(s);
			return;
		}
		s->names[id] = names;
		s->added++;
	}
	if (s->names[id])
		*f = s->first[s->names[id]];
}

void same_frames_replace(struct same_frames **same, struct claims *c, struct walk *w)
{
	for (uint32_t i = 0; c && i < w->n; i++) {
		if (w->frames[i].kind != FRAME_PUSHED)
			continue;
		if (!*same)
			*same = calloc(1, sizeof(**same));
		if (*same && (*same)->passing)
			(*same)->passing--;
		else if (*same)
			replace(*same, c, &w->frames[i]);
	}
}

void same_frames_each(const struct same_frames *s,
		      void (*each)(struct claims *, const struct walk_frame *), struct claims *c)
{
	for (uint32_t i = 1; s && i < s->all.n && i < s->nfirst; i++)
		each(c, &s->first[i]);
}

void same_frames_count(const struct same_frames *s, uint32_t *known, uint32_t *names)
{
	*known = s && s->known.n ? s->known.n - 1 : 0;
	*names = s && s->all.n ? s->all.n - 1 : 0;
}

void same_frames_free(struct same_frames *s)
{
	if (!s)
		return;
	forget(s);
	free(s);
}

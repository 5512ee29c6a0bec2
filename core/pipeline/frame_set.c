/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/frame_set.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/assert.h"

#define SLOTS_MIN 128u
#define SLOT_BYTES 12u /* of slots for each frame, on average */

/* The fields of a frame in memory without a file. A dictionary key: no padding. */
struct frame_rest {
	uint64_t process, extra[3];
	uint32_t generation, flags;
};

_Static_assert(sizeof(struct frame_head) == 16 && sizeof(struct frame_rest) == 40, "no padding");

static bool has_rest(uint16_t kind)
{
	return kind == FRAME_ANONYMOUS || kind == FRAME_PUSHED;
}

/* Makes room for another frame. */
static int grow_heads(struct frame_set *s)
{
	void *grown = arena_room(s->arena, s->heads, s->n, &s->cap, sizeof(*s->heads));

	if (!grown)
		return -ENOMEM;
	s->heads = grown;
	return 0;
}

int frame_set_init(struct frame_set *s, struct arena *arena)
{
	*s = (struct frame_set){.arena = arena, .nslots = SLOTS_MIN};
	s->slots = arena_add(arena, SLOTS_MIN * sizeof(*s->slots));
	if (!s->slots || grow_heads(s) || dict_init_in(&s->rests, arena))
		return -ENOMEM;
	s->heads[s->n++] = (struct frame_head){0};
	return 0;
}

static struct frame_rest rest_of(const struct walk_frame *f)
{
	return (struct frame_rest){.process = f->process,
				   .extra = {f->extra[0], f->extra[1], f->extra[2]},
				   .generation = f->generation,
				   .flags = f->flags};
}

/* The slot of a frame, or the free slot where it belongs. */
static uint32_t *slot_of(const struct frame_set *s, const struct frame_head *h)
{
	uint32_t i = (uint32_t)XXH3_64bits(h, sizeof(*h));

	for (;; i++) {
		uint32_t *slot = &s->slots[i & (s->nslots - 1)];

		if (!*slot || !memcmp(&s->heads[*slot], h, sizeof(*h)))
			return slot;
	}
}

/* At most half of the slots are used. */
static int grow(struct frame_set *s)
{
	struct frame_set more = *s;

	if (grow_heads(s))
		return -ENOMEM;
	if (s->n < s->nslots / 2)
		return 0;
	more.heads = s->heads;
	more.nslots = s->nslots * 2;
	more.slots = arena_add(s->arena, more.nslots * sizeof(*more.slots));
	if (!more.slots)
		return -ENOMEM;
	for (uint32_t id = 1; id < s->n; id++)
		*slot_of(&more, &s->heads[id]) = id;
	arena_drop(s->arena, s->slots, s->nslots * sizeof(*s->slots));
	s->slots = more.slots;
	s->nslots = more.nslots;
	return 0;
}

uint32_t frame_set_add(struct frame_set *s, const struct walk_frame *f)
{
	struct frame_head h = {f->addr, f->file, f->kind, f->guessed};
	uint32_t *slot;

	if (has_rest(f->kind)) {
		struct frame_rest rest = rest_of(f);

		h.file = dict_add(&s->rests, &rest, sizeof(rest));
		if (h.file == DICT_NONE)
			return FRAME_SET_NONE;
	}
	slot = slot_of(s, &h);
	if (*slot)
		return *slot;
	if (s->n == FRAME_SET_NONE / 4 || grow(s))
		return FRAME_SET_NONE;
	slot = slot_of(s, &h); /* the slots may be others now */
	fusee_assert(s->n < s->cap && s->n < s->nslots);
	s->heads[s->n] = h;
	*slot = s->n++;
	return *slot;
}

uint32_t frame_set_find(const struct frame_set *s, const struct walk_frame *f)
{
	struct frame_head h = {f->addr, f->file, f->kind, f->guessed};
	uint32_t id;

	if (has_rest(f->kind)) {
		struct frame_rest rest = rest_of(f);

		h.file = dict_find(&s->rests, &rest, sizeof(rest));
		if (h.file == DICT_NONE)
			return FRAME_SET_NONE;
	}
	id = *slot_of(s, &h);
	return id ? id : FRAME_SET_NONE;
}

struct walk_frame frame_set_at(const struct frame_set *s, uint32_t id)
{
	const struct frame_head *h = &s->heads[id];
	struct walk_frame f = {.kind = h->kind, .guessed = h->guessed, .addr = h->addr};
	struct frame_rest rest;

	if (!has_rest(h->kind)) {
		f.file = h->file;
		return f;
	}
	memcpy(&rest, s->rests.entries[h->file].key, sizeof(rest));
	f.process = rest.process;
	memcpy(f.extra, rest.extra, sizeof(f.extra));
	f.generation = rest.generation;
	f.flags = rest.flags;
	return f;
}

uint64_t frame_set_bytes(const struct frame_set *s)
{
	return s->n * (sizeof(*s->heads) + SLOT_BYTES) + s->rests.bytes +
	       s->rests.n * (sizeof(*s->rests.entries) + 2 * sizeof(*s->rests.slots.at));
}
